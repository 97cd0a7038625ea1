// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// shrunkSizes are sizes to truncate a file of 1,024 slots to: nothing, within the header, within
// the first page, the first page, all but the last slot, and half of the one before.
func shrunkSizes() []int64 {
	return []int64{0, 20, 200, 4096, V4.FileSize(1023), V4.FileSize(1022) + 8}
}

func TestFileShrinksBetweenPasses(t *testing.T) {
	for _, mode := range modes() {
		for _, pending := range []int{0, 200, 600, 1023} {
			for _, size := range shrunkSizes() {
				w := newRing(t, V4, 1024)
				r := open(t, w.Path(), mode)
				if pending == 200 { // in the first page, which the reader knows to be written once it has read an event
					push(t, w, 0, 1)
					read(t, r)
				}
				push(t, w, 0, pending)
				must.OK(t, os.Truncate(w.Path(), size))
				got, err := tryRead(r, 0)
				if whole := size >= V4.FileSize(uint64(pending)+1); whole && len(got) == pending && err == nil {
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
				if err := r.checkSize(); !errors.Is(err, ErrShrunk) {
					t.Errorf("%v, cut to %d: error %v", mode, size, err)
				}
			}
		}
	}
}

// The batch is a copy, so only the next copy faults.
func TestFileShrinksDuringARead(t *testing.T) {
	for _, mode := range modes() {
		w := newRing(t, V4, 16384)
		r := open(t, w.Path(), mode)
		push(t, w, 0, 16000)
		var got []Event
		_, err := r.Read(0, func(b Batch) {
			must.OK(t, os.Truncate(w.Path(), 8192))
			for i := range b.Len() {
				got = append(got, b.Event(i))
			}
		})
		if !errors.Is(err, ErrShrunk) || r.Position() != uint64(len(got)) {
			t.Errorf("%v: error %v at %d after %d events", mode, err, r.Position(), len(got))
		}
		equal(t, "events", got, samples(V4, 0, len(got)))
		says(t, err, w.Path())
		if debug.SetPanicOnFault(false) {
			t.Error("faults still panic in this goroutine")
		}
	}
}

func TestFileShrinksBeforeCommit(t *testing.T) {
	for _, at := range []int{0, 9} {
		for _, size := range shrunkSizes() {
			w := newRing(t, V4, 1024)
			r := open(t, w.Path(), Consume)
			advance(t, w, r, at)
			push(t, w, 0, 600)
			read(t, r)
			must.OK(t, os.Truncate(w.Path(), size))
			err := r.Commit()
			// With an intact header, the commit succeeds: it needs no slot.
			if wrong := errors.Is(err, ErrShrunk) || errors.Is(err, ErrRestarted); !wrong && (err != nil || size < HeaderSize) {
				t.Errorf("at %d, cut to %d: commit: %v", at, size, err)
			}
		}
	}
}

func TestErrorsOfTheSystemAreReturned(t *testing.T) {
	r, err := OpenReader(newRing(t, V4, 16).Path(), Consume)
	must.OK(t, err)
	file, _ := r.backing.(fileBacking)
	must.OK(t, file.file().Close())
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a file that is closed already: %v", err)
	} else {
		says(t, err, r.Path(), "close")
	}
	pipe, end, err := os.Pipe()
	must.OK(t, err)
	defer end.Close()
	must.OK(t, pipe.Close())
	if _, _, err := mapFile(pipe, HeaderSize, false, false); !errors.Is(err, unix.EBADF) {
		t.Errorf("a closed file is mapped: %v", err)
	}
	if _, err := statFile(pipe); !errors.Is(err, unix.EBADF) {
		t.Errorf("a closed file is described: %v", err)
	}
}

// The file has shrunk since its size was loaded.
func TestReadBeyondTheEndIsErrShrunk(t *testing.T) {
	f, err := os.Open(newRing(t, V4, 16).Path())
	must.OK(t, err)
	defer f.Close()
	if b, err := readAt(f, HeaderSize, V4.FileSize(16)); !errors.Is(err, ErrShrunk) {
		t.Errorf("%d bytes, error %v", len(b), err)
	}
}

// Agents of other layouts and sizes do this when they restart.
func TestFileThatHasGrownIsARestart(t *testing.T) {
	for _, mode := range modes() {
		w := newRing(t, V4, 16)
		r := open(t, w.Path(), mode)
		push(t, w, 0, 5)
		must.OK(t, os.Truncate(w.Path(), V4.FileSize(17)))
		if got, err := tryRead(r, 0); !errors.Is(err, ErrRestarted) || len(got) > 0 {
			t.Errorf("%v: %d events, error %v", mode, len(got), err)
		}
	}
}

func TestFileShrinksUnderAWriter(t *testing.T) {
	w := newRing(t, V4, 1024)
	push(t, w, 0, 200)
	before := openFiles(t)
	must.OK(t, os.Truncate(w.Path(), 4096))
	// The events that fit in the first page are pushed.
	fit := (4096-HeaderSize)/16 - 200
	n, err := w.PushBatch(samples(V4, 200, 500))
	if !errors.Is(err, ErrShrunk) || n != fit {
		t.Errorf("pushed %d, want %d: %v", n, fit, err)
	}
	if h := headerOf(w); h.WritePos != uint64(200+fit) {
		t.Errorf("write position %d, want %d", h.WritePos, 200+fit)
	}
	must.OK(t, os.Truncate(w.Path(), 0))
	_, lenErr := w.Len()
	for what, err := range map[string]error{"Push": w.Push(sample(V4, 1)), "Len": lenErr} {
		if !errors.Is(err, ErrShrunk) {
			t.Errorf("%s on an empty file: %v", what, err)
		} else {
			says(t, err, w.Path())
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files open, %d before", after, before)
	}
}

// They are mistakes of this program.
func TestOtherPanicsAreNotHidden(t *testing.T) {
	defer func() {
		if v := recover(); v != "a mistake" {
			t.Errorf("recovered %v", v)
		}
	}()
	t.Error((&mapping{}).Guard(func() { panic("a mistake") }))
}
