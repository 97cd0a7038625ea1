// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ring is a ring in plain memory. Batches can only be created by reading a ring.
type ring struct {
	tb  testing.TB
	mem []byte
	w   *ringbuf.Writer
	r   *ringbuf.Reader
}

func newRing(tb testing.TB, l ringbuf.Layout, capacity int) *ring {
	tb.Helper()
	mem := memory(int(l.FileSize(uint64(capacity))))
	w, err := ringbuf.NewWriter(mem, backing(len(mem)), l, capacity)
	must.OK(tb, err)
	return &ring{tb: tb, mem: mem, w: w, r: openRing(tb, mem)}
}

func openRing(tb testing.TB, mem []byte) *ringbuf.Reader {
	tb.Helper()
	r, err := ringbuf.NewReader(mem, backing(len(mem)), ringbuf.Consume)
	must.OK(tb, err)
	return r
}

// memory returns size bytes, which the allocator aligns to at least 8 bytes.
func memory(size int) []byte { return make([]byte, size) }

// backing is the size of memory that never changes.
type backing int64

func (b backing) Stat() (ringbuf.FileState, error) {
	return ringbuf.FileState{Size: int64(b)}, nil
}

var clock atomic.Int64

// Now advances the time, so that a reader doesn't wait at position 0.
func (backing) Now() time.Time { return time.Unix(clock.Add(3600), 0) }

func (backing) Guard(fn func()) error {
	fn()
	return nil
}

// feed counts events in batches of the given sizes, and the rest in batches as large as
// the ring allows.
func (r *ring) feed(a *tally.Agent, events []ringbuf.Event, batches ...int) {
	r.tb.Helper()
	for len(events) > 0 {
		n := min(len(events), r.w.Capacity()-2) // a commit to position 0 keeps a slot
		if len(batches) > 0 {
			n = min(n, batches[0])
			batches = batches[1:]
		}
		r.push(events[:n])
		r.read(a.Add)
		events = events[n:]
	}
}

func (r *ring) push(events []ringbuf.Event) {
	r.tb.Helper()
	if n, err := r.w.PushBatch(events); err != nil || n != len(events) {
		r.tb.Fatalf("pushed %d of %d events: %v", n, len(events), err)
	}
}

func (r *ring) read(fn func(ringbuf.Batch)) {
	r.tb.Helper()
	if _, err := r.r.Read(0, fn); err != nil {
		r.tb.Fatal(err)
	}
	if err := r.r.Commit(); err != nil {
		r.tb.Fatal(err)
	}
}

func shape(tb testing.TB, c tally.Config) *tally.Shape {
	tb.Helper()
	s, err := tally.NewShape(c)
	must.OK(tb, err)
	return s
}
