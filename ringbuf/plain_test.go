// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// plain is a ring's file in plain memory.
type plain struct {
	mem  []byte
	size int64 // the result of Stat; differs from len(mem) after the file shrank or grew

	now    time.Time
	stands bool // whether the time stands still, so that an ambiguous header isn't believed
}

func newPlain(b []byte) *plain {
	p := &plain{mem: alignedBytes(len(b)), size: int64(len(b)), now: time.Unix(0, 0)}
	copy(p.mem, b)
	return p
}

func (p *plain) Stat() (FileState, error) {
	return FileState{Size: p.size}, nil
}

func (p *plain) Guard(fn func()) error {
	fn()
	return nil
}

func (p *plain) Now() time.Time {
	if !p.stands {
		p.now = p.now.Add(settleTime)
	}
	return p.now
}

// plainRing creates an empty ring in memory.
func plainRing(tb testing.TB, l Layout, capacity int) (*plain, *Writer) {
	tb.Helper()
	p := newPlain(make([]byte, l.FileSize(uint64(capacity))))
	w, err := NewWriter(p.mem, p, l, capacity)
	must.OK(tb, err)
	return p, w
}

func (p *plain) reader(tb testing.TB, mode Mode) *Reader {
	tb.Helper()
	r, err := NewReader(p.mem, p, mode)
	must.OK(tb, err)
	return r
}

// restart returns the stores of a restarting agent, in the order of NIXL's
// createCyclicBuffer. The offsets are repeated here on purpose.
func restart(l Layout) []func(p *plain) {
	const capacity = 64
	store := func(at int, v uint64) func(p *plain) {
		return func(p *plain) { binary.LittleEndian.PutUint64(p.mem[at:], v) }
	}
	version := func(at int, v uint32) func(p *plain) {
		return func(p *plain) { binary.LittleEndian.PutUint32(p.mem[at:], v) }
	}
	return []func(p *plain){
		store(0, 0),                      // write position
		store(8, 0),                      // read position
		version(16, 0),                   // version, until the header is complete
		store(24, capacity),              // capacity
		store(32, capacity-1),            // mask
		version(16, uint32(l.Version())), // version
		version(20, uint32(l.Version())), // expected version
	}
}

// alignedBytes returns n bytes that are aligned like a slot.
func alignedBytes(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// values reads the pending events and returns their values.
func values(r *Reader) (got []uint64, err error) {
	_, err = r.Read(0, func(b Batch) {
		for i := range b.Len() {
			got = append(got, b.Event(i).Value)
		}
	})
	return got, err
}

// fill pushes events with the values from to to-1. All must fit.
func fill(tb testing.TB, w *Writer, from, to uint64) {
	tb.Helper()
	for v := from; v < to; v++ {
		if err := w.Push(NewEvent(TypeTxBytes, v)); err != nil {
			tb.Fatalf("push %d: %v", v, err)
		}
	}
}

// drain reads and commits the pending events.
func drain(tb testing.TB, r *Reader) []uint64 {
	tb.Helper()
	got, err := values(r)
	if err = errors.Join(err, r.Commit()); err != nil {
		tb.Fatal(err)
	}
	return got
}

// span returns the values from to to-1.
func span(from, to uint64) (s []uint64) {
	for v := from; v < to; v++ {
		s = append(s, v)
	}
	return s
}
