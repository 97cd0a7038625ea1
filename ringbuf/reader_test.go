// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestReadingDoesNotAllocate(t *testing.T) {
	for _, mode := range modes() {
		w := newRing(t, V4, 64)
		c := open(t, w.Path(), Consume)
		r := c
		if mode == Observe {
			r = open(t, w.Path(), Observe)
		}
		events := samples(V4, 0, 40)
		var sum uint64
		count := func(b Batch) {
			for i, e := range b.Typed() {
				sum += e.Value + b.Event(i).Value
			}
		}
		round := func() {
			if n, err := w.PushBatch(events); n != len(events) || err != nil {
				t.Fatalf("pushed %d: %v", n, err)
			}
			_, errRead := r.Read(0, count)
			must.OK(t, errors.Join(errRead, r.Commit()))
			r.Idle()
			if mode == Observe {
				_, errRead = c.Read(0, count)
				must.OK(t, errors.Join(errRead, c.Commit()))
			}
		}
		round() // an observer allocates its buffer once
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("%v: %v allocations for a push, a read and a commit", mode, n)
		}
		if sum == 0 {
			t.Error("nothing was read")
		}
	}
}

func TestClosedReaderCommitsNothingAndReturnsErrClosed(t *testing.T) {
	for _, mode := range modes() {
		w := newRing(t, V4, 8)
		push(t, w, 0, 3)
		r := open(t, w.Path(), mode)
		read(t, r)
		for range 2 {
			if err := r.Close(); err != nil {
				t.Errorf("%v: close: %v", mode, err)
			}
		}
		_, err := r.Read(0, func(Batch) { t.Error("a batch from a closed reader") })
		for what, err := range map[string]error{"Read": err, "Commit": r.Commit()} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%v: %s after Close: %v", mode, what, err)
			} else {
				says(t, err, w.Path())
			}
		}
		if h := headerOf(w); h.ReadPos != 0 {
			t.Errorf("%v: Close committed to %d", mode, h.ReadPos)
		}
	}
}

func TestMemoryThatIsNoRingIsRefused(t *testing.T) {
	size := int(V4.FileSize(8))
	for _, mem := range [][]byte{alignedBytes(HeaderSize - 1), alignedBytes(size + 8)[4:][:size]} {
		if _, err := NewReader(mem, newPlain(mem), Consume); !errors.Is(err, ErrNotRing) {
			t.Errorf("reader of %d bytes: %v", len(mem), err)
		}
		if _, err := NewWriter(mem, newPlain(mem), V4, 8); !errors.Is(err, ErrInvalid) {
			t.Errorf("writer of %d bytes: %v", len(mem), err)
		}
	}
	if _, err := NewWriter(alignedBytes(size), newPlain(alignedBytes(size)), V4, 6); err == nil {
		t.Error("a ring of 6 slots is created")
	}
}

func TestReaderOfAFailingBackingIsRefused(t *testing.T) {
	for what, b := range map[string]failing{"stat": {stat: unix.EIO}, "guard": {guard: unix.EIO}} {
		b.plain, _ = plainRing(t, V4, 8)
		if _, err := NewReader(b.mem, b, Consume); !errors.Is(err, unix.EIO) {
			t.Errorf("reader, %s: %v", what, err)
		}
		if _, err := NewWriter(b.mem, b, V4, 8); !errors.Is(err, b.guard) {
			t.Errorf("writer, %s: %v", what, err)
		}
	}
}

type failing struct {
	*plain

	stat, guard error
}

func (f failing) Stat() (FileState, error) { return FileState{}, f.stat }
func (f failing) Guard(fn func()) error    { fn(); return f.guard }

// Another name of a file doesn't change its identity.
func TestReadersOfOneFileHaveOneID(t *testing.T) {
	one, other := newRing(t, V4, 8).Path(), newRing(t, V4, 8).Path()
	must.OK(t, os.Link(one, other+" link"))
	type id struct{ dev, ino uint64 }
	idOf := func(path string) (i id) {
		i.dev, i.ino = open(t, path, Observe).ID()
		return i
	}
	if a, b, c := idOf(one), idOf(other+" link"), idOf(other); a != b || a == c || a.ino == 0 {
		t.Errorf("IDs %v and %v of one file, %v of another", a, b, c)
	}
}
