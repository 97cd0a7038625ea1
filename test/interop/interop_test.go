// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package interop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// rings are the capacities to test. Small rings get fewer events, because each
// event needs a switch between the two processes.
var rings = []struct {
	capacity int
	fewer    uint64 // the number of events is divided by it
}{{4096, 1}, {64, 20}, {2, 10000}}

// eachRing runs a test for every layout and capacity.
func eachRing(t *testing.T, run func(t *testing.T, l ringbuf.Layout, capacity int, count uint64)) {
	t.Helper()
	for _, l := range ringbuf.Layouts() {
		for _, ring := range rings {
			t.Run(fmt.Sprintf("%v/%d", l, ring.capacity), func(t *testing.T) {
				run(t, l, ring.capacity, events(t)/ring.fewer)
			})
		}
	}
}

// The C++ producer pushes at full speed while the reader drains the ring.
func TestReaderGetsAllEventsOfACPlusPlusProducerInOrder(t *testing.T) {
	eachRing(t, func(t *testing.T, l ringbuf.Layout, capacity int, count uint64) {
		seed := rand.Uint64()
		path := filepath.Join(t.TempDir(), "agent")
		p := start(t, "producer", path, l, capacity, count, seed)
		began := time.Now()
		passes, r := drain(t, path, l, capacity, &sequence{seed: seed}, count, p)
		took := time.Since(began)
		if r.Pushed != count {
			t.Errorf("seed %d: pushed %d", seed, r.Pushed)
		}
		t.Logf("%d events in %v, %.1f ns each, in %d passes; the producer waited %d times",
			count, took.Round(time.Millisecond), float64(took.Nanoseconds())/float64(max(count, 1)), passes, r.Waits)
	})
}

// waiter waits for the other process. It spins, and yields at intervals in case
// both processes share a core.
type waiter struct{ spins int }

func (w *waiter) wait() {
	if w.spins++; w.spins%64 == 0 {
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// drain reads count events of a producer and checks each. Some reads are limited
// to a few events, and some aren't committed at once.
func drain(t *testing.T, path string, l ringbuf.Layout, capacity int, s *sequence, count uint64, p *process) (passes int, end report) {
	t.Helper()
	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(t, err)
	defer r.Close()
	if r.Layout() != l || r.Capacity() != capacity {
		t.Fatalf("the ring is %v of %d, want %v of %d", r.Layout(), r.Capacity(), l, capacity)
	}
	rng := rand.New(rand.NewPCG(s.seed, 1))
	var wrong error
	check := func(b ringbuf.Batch) {
		if wrong == nil {
			wrong = s.check(b)
		}
	}
	var w waiter
	over := false
	for ; s.next < count; passes++ {
		limit := 0
		if passes%7 == 0 {
			limit = 1 + rng.IntN(capacity)
		}
		before := s.next
		fill, err := r.Read(limit, check)
		if err == nil && wrong == nil && (passes%3 != 0 || fill == capacity-1) {
			err = r.Commit()
		}
		if err != nil || wrong != nil {
			t.Fatalf("seed %d, after %d events: %v", s.seed, s.next, errors.Join(err, wrong))
		}
		if s.next != before {
			continue
		}
		if over && waits(t, r) {
			continue
		}
		if over {
			t.Fatalf("seed %d: read only %d of %d events, and the producer has exited", s.seed, s.next, count)
		}
		select {
		case r, ok := <-p.ended:
			if !ok {
				t.Fatal(p.err)
			}
			end, over = r, true
		default:
			w.wait()
		}
	}
	if err := r.Commit(); err != nil {
		t.Errorf("seed %d, at the end: %v", s.seed, err)
	}
	if _, err := r.Read(0, check); s.next != count || err != nil {
		t.Errorf("seed %d: read %d more events than were pushed (error %v)", s.seed, s.next-count, err)
	}
	if !over {
		end = p.finish(t)
	}
	return passes, end
}

// waits reports whether events of an exited producer are still in the ring, and
// waits 10 ms if so. A ring whose write position is 0 may be one that is being created,
// so the reader waits before it delivers the event in the last slot.
func waits(t *testing.T, r *ringbuf.Reader) bool {
	t.Helper()
	h, err := ringbuf.Peek(r.Path())
	must.OK(t, err)
	if h.WritePos == r.Position() {
		return false
	}
	select {
	case <-time.After(10 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal("the ring still has events")
	}
	return true
}

func TestCPlusPlusConsumerGetsAllEventsOfTheWriter(t *testing.T) {
	eachRing(t, func(t *testing.T, l ringbuf.Layout, capacity int, count uint64) {
		seed := rand.Uint64()
		w, err := ringbuf.Create(filepath.Join(t.TempDir(), "agent"), l, capacity)
		must.OK(t, err)
		defer w.Close()
		p := start(t, "consumer", w.Path(), l, count, seed)
		began := time.Now()
		var idle waiter
		batch := make([]ringbuf.Event, 0, 256)
		for next := uint64(0); next < count; {
			for next+uint64(len(batch)) < count && len(batch) < cap(batch) {
				batch = append(batch, event(l, seed, next+uint64(len(batch))))
			}
			n, err := w.PushBatch(batch)
			if err != nil {
				t.Fatalf("seed %d, after %d events: %v", seed, next, err)
			}
			next += uint64(n)
			batch = batch[:copy(batch, batch[n:])]
			if n > 0 {
				continue
			}
			select {
			case <-p.ended:
				t.Fatalf("seed %d: the consumer exited after at most %d events: %v", seed, next, p.err)
			default:
				idle.wait()
			}
		}
		if r := p.finish(t); r.Popped != count {
			t.Errorf("seed %d: the consumer got %d of %d events", seed, r.Popped, count)
		}
		took := time.Since(began)
		t.Logf("%d events in %v, %.1f ns each", count, took.Round(time.Millisecond), float64(took.Nanoseconds())/float64(max(count, 1)))
	})
}
