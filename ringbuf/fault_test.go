// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"runtime/debug"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// shrunkSizes are sizes to truncate a file to: nothing, within the header, within
// the first page, the first page, and all but the last slot.
func shrunkSizes(whole int) []int64 { return []int64{0, 20, 200, 4096, int64(whole - 16)} }

func TestFileShrinksBetweenPasses(t *testing.T) {
	for _, mode := range modes() {
		for _, pending := range []int{0, 600} {
			w := newRing(t, V4, 1024)
			for _, size := range shrunkSizes(len(w.mem)) {
				w := newRing(t, V4, 1024)
				r := open(t, w.Path(), mode)
				push(t, w, 0, pending)
				truncate(t, w.Path(), size)
				got, err := tryRead(r, 0)
				if whole := size >= V4.FileSize(600); whole && len(got) == pending && err == nil {
					continue // no event is missing
				}
				if len(got) != 0 {
					t.Errorf("%v, cut to %d: %d events", mode, size, len(got))
				}
				// In the first page, the header is either intact or zero. With
				// nothing pending, Read accesses nothing else.
				if wrong := errors.Is(err, ErrShrunk) || errors.Is(err, ErrRestarted); !wrong && (pending > 0 || size < HeaderSize) {
					t.Errorf("%v, cut to %d with %d pending: error %v", mode, size, pending, err)
				}
				if _, err := r.stat(); !errors.Is(err, ErrShrunk) {
					t.Errorf("%v, cut to %d: error %v", mode, size, err)
				}
			}
		}
	}
}

// The file shrinks while a callback reads its slots: a real SIGBUS in the caller's
// code.
func TestFileShrinksUnderTheCallback(t *testing.T) {
	eachLayout(t, func(t *testing.T, l Layout) {
		w := newRing(t, l, 1024)
		r := open(t, w.Path(), Consume)
		push(t, w, 0, 1000)
		seen, after := 0, false
		fill, err := r.Read(0, func(b Batch) {
			for i := range b.Len() {
				if i == 10 {
					truncate(t, w.Path(), 0)
				}
				if e := b.Event(i); e == sample(l, i) {
					seen++
				}
			}
			after = true
		})
		if !errors.Is(err, ErrShrunk) || after {
			t.Fatalf("error %v after %d events, fill %d", err, seen, fill)
		}
		says(t, err, w.Path())
		if seen != 10 {
			t.Errorf("%d events were seen before the end of the file, want 10", seen)
		}
		if _, err := tryRead(r, 0); !errors.Is(err, ErrShrunk) {
			t.Errorf("the next read: %v", err)
		}
	})
}

// An observer copies slots, so the fault occurs in this package's copy.
func TestFileShrinksUnderAnObserver(t *testing.T) {
	w := newRing(t, V4, 16384)
	r := open(t, w.Path(), Observe)
	push(t, w, 0, 16000)
	batches := 0
	_, err := r.Read(0, func(Batch) {
		batches++
		truncate(t, w.Path(), 8192)
	})
	if !errors.Is(err, ErrShrunk) || batches != 1 {
		t.Errorf("error %v after %d batches", err, batches)
	}
}

func TestFileShrinksBeforeCommit(t *testing.T) {
	for _, at := range []int{0, 9} {
		w := newRing(t, V4, 1024)
		for _, size := range shrunkSizes(len(w.mem)) {
			w := newRing(t, V4, 1024)
			r := open(t, w.Path(), Consume)
			advance(t, w, r, at)
			push(t, w, 0, 600)
			read(t, r)
			truncate(t, w.Path(), size)
			err := r.Commit()
			// With an intact header, the commit succeeds: it needs no slot.
			if wrong := errors.Is(err, ErrShrunk) || errors.Is(err, ErrRestarted); !wrong && (err != nil || size < HeaderSize) {
				t.Errorf("at %d, cut to %d: commit: %v", at, size, err)
			}
		}
	}
}

func TestFileShrinksUnderAWriter(t *testing.T) {
	w := newRing(t, V4, 1024)
	push(t, w, 0, 200)
	truncate(t, w.Path(), 4096)
	// The events that fit in the first page are pushed.
	fit := (4096-HeaderSize)/16 - 200
	n, err := w.PushBatch(samples(V4, 200, 500))
	if !errors.Is(err, ErrShrunk) || n != fit {
		t.Errorf("pushed %d, want %d: %v", n, fit, err)
	}
	if h := headerOf(w); h.WritePos != uint64(200+fit) {
		t.Errorf("write position %d, want %d", h.WritePos, 200+fit)
	}
	truncate(t, w.Path(), 0)
	_, lenErr := w.Len()
	for what, err := range map[string]error{"Push": w.Push(sample(V4, 1)), "Len": lenErr} {
		if !errors.Is(err, ErrShrunk) {
			t.Errorf("%s on an empty file: %v", what, err)
		} else {
			says(t, err, w.Path())
		}
	}
}

var nothing struct {
	m map[int]int
	p *int
}

// Guard handles only faults in the ring's memory.
func TestPanicsOfTheCallbackPropagate(t *testing.T) {
	w := newRing(t, V4, 16)
	push(t, w, 0, 5)
	r := open(t, w.Path(), Consume)
	for what, fn := range map[string]func(Batch){
		"its own":      func(Batch) { panic("mine") },
		"a nil map":    func(Batch) { nothing.m[1]++ },
		"out of nil":   func(Batch) { *nothing.p++ },
		"out of range": func(b Batch) { b.Event(b.Len()) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a panic of the callback (%s) was swallowed", what)
				}
			}()
			_, err := r.Read(0, fn)
			t.Errorf("a panic of the callback (%s) became %v", what, err)
		}()
		if debug.SetPanicOnFault(false) {
			t.Errorf("after a panic (%s) faults still panic in this goroutine", what)
		}
	}
	equal(t, "events after that", read(t, r), samples(V4, 0, 5))
	if debug.SetPanicOnFault(false) {
		t.Error("after a read faults still panic in this goroutine")
	}
}

func TestFaultInANestedReadBelongsToTheInnerRing(t *testing.T) {
	a, b := newRing(t, V4, 16), newRing(t, V4, 16)
	push(t, a, 0, 5)
	push(t, b, 0, 5)
	ra, rb := open(t, a.Path(), Consume), open(t, b.Path(), Consume)
	var inner error
	_, outer := ra.Read(0, func(Batch) {
		_, inner = rb.Read(0, func(batch Batch) {
			truncate(t, b.Path(), 0)
			batch.Event(0)
		})
	})
	if outer != nil || !errors.Is(inner, ErrShrunk) {
		t.Errorf("outer ring: %v, truncated inner ring: %v", outer, inner)
	}
}

// The other mappings are directly above and below the ring's.
func TestFaultOutsideTheRingPropagates(t *testing.T) {
	above := newRing(t, V4, 16)
	w := newRing(t, V4, 16)
	push(t, w, 0, 5)
	r := open(t, w.Path(), Consume)
	below := newRing(t, V4, 16)
	for _, other := range []*Writer{above, below} {
		truncate(t, other.Path(), 0)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a fault of other memory was swallowed")
				}
			}()
			_, err := r.Read(0, func(Batch) { Batch{other.layout, other.slots}.Event(0) })
			t.Errorf("a fault of other memory became %v", err)
		}()
	}
}

// The agent keeps writing to an unlinked file, so the reader keeps reading it.
func TestUnlinkedRingIsStillRead(t *testing.T) {
	w := newRing(t, V4, 16)
	r := open(t, w.Path(), Consume)
	must.OK(t, os.Remove(w.Path()))
	push(t, w, 0, 5)
	equal(t, "events", read(t, r), samples(V4, 0, 5))
	commit(t, r)
	if _, err := r.stat(); errors.Is(err, ErrShrunk) {
		t.Error("an unlinked file counts as truncated")
	}
}
