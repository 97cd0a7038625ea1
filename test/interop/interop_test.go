// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package interop

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// rings are the capacities to try, and how many times fewer events to push: in
// a small ring each event is a hand-over between two processes.
var rings = []struct {
	capacity int
	fewer    uint64
}{{4096, 1}, {64, 20}, {2, 200}}

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

// A producer at full speed, in another process and another language, and a
// reader that drains: nothing is lost, doubled, torn or out of order.
func TestProducer(t *testing.T) {
	eachRing(t, func(t *testing.T, l ringbuf.Layout, capacity int, count uint64) {
		seed := rand.Uint64()
		path := filepath.Join(t.TempDir(), "agent")
		p := start(t, "producer", path, l, capacity, count, seed)
		began := time.Now()
		passes, r := drain(t, path, l, capacity, &sequence{seed: seed}, count, p)
		took := time.Since(began)
		if r.Pushed != count || r.Dropped != 0 {
			t.Errorf("seed %d: pushed %d, dropped %d", seed, r.Pushed, r.Dropped)
		}
		t.Logf("%d events in %v, %.1f ns each, in %d passes; the producer waited %d times",
			count, took.Round(time.Millisecond), float64(took.Nanoseconds())/float64(max(count, 1)), passes, r.Waits)
	})
}

// waiter waits for the other process: it spins, and gives way where both share
// a core.
type waiter struct{ spins int }

func (w *waiter) wait() {
	if w.spins++; w.spins%64 == 0 {
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// drain reads count events of a producer and checks each. Now and then it takes
// a few only, and commits later.
func drain(t *testing.T, path string, l ringbuf.Layout, capacity int, s *sequence, count uint64, p *process) (passes int, end report) {
	t.Helper()
	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Layout() != l || r.Capacity() != capacity {
		t.Fatalf("the ring is %v of %d, want %v of %d", r.Layout(), r.Capacity(), l, capacity)
	}
	rng := rand.New(rand.NewPCG(s.seed, 1))
	var wrong error
	check := func(b ringbuf.Batch) {
		if wrong == nil {
			wrong = s.check(b, false)
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
			t.Fatalf("seed %d: the producer has ended, and only %d of %d events came", s.seed, s.next, count)
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
	if fill, err := r.Read(0, check); fill != 0 || err != nil {
		t.Errorf("seed %d: %d events too many (%v)", s.seed, fill, err)
	}
	if !over {
		end = p.finish(t)
	}
	return passes, end
}

// waits reports whether events of a producer that has ended are still in the ring,
// and waits a little. The last event before the end of the ring may not be believed
// until the file is a second old.
func waits(t *testing.T, r *ringbuf.Reader) bool {
	t.Helper()
	h, err := ringbuf.Peek(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	if h.WritePos == r.Position() {
		return false
	}
	select {
	case <-time.After(10 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal("events are left in the ring")
	}
	return true
}

// A producer that drops what doesn't fit, as an agent does: what it counts as
// dropped is what the reader misses, and the rest is whole and in order.
func TestProducerThatDrops(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		t.Run(l.String(), func(t *testing.T) {
			count := events(t) / 2
			seed := rand.Uint64()
			path := filepath.Join(t.TempDir(), "agent")
			p := start(t, "producer", path, l, 256, count, seed, "drop")
			r, err := ringbuf.OpenReader(path, ringbuf.Consume)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s := &sequence{seed: seed}
			var got uint64
			var wrong error
			check := func(b ringbuf.Batch) {
				if wrong == nil {
					wrong = s.check(b, true)
				}
				got += uint64(b.Len())
			}
			var end report
			var w waiter
			ended := p.ended
			for ended != nil || waits(t, r) {
				select {
				case end = <-ended:
					ended = nil // and at least one more pass
				default:
				}
				_, err := r.Read(0, check)
				if err = errors.Join(err, wrong, r.Commit()); err != nil {
					t.Fatalf("seed %d, after %d events: %v", seed, got, err)
				}
				w.wait()
			}
			if got != end.Pushed || end.Pushed+end.Dropped != count || s.gaps > end.Dropped {
				t.Errorf("seed %d: read %d and missed %d; the producer pushed %d and dropped %d of %d",
					seed, got, s.gaps, end.Pushed, end.Dropped, count)
			}
			t.Logf("%d events pushed and read, %d dropped", end.Pushed, end.Dropped)
		})
	}
}

// The other way round: what this project's writer pushes, a reader in another
// process and another language understands.
func TestConsumer(t *testing.T) {
	eachRing(t, func(t *testing.T, l ringbuf.Layout, capacity int, count uint64) {
		seed := rand.Uint64()
		w, err := ringbuf.Create(filepath.Join(t.TempDir(), "agent"), l, capacity)
		if err != nil {
			t.Fatal(err)
		}
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
				t.Fatalf("seed %d: the consumer ended after %d events or fewer: %v", seed, next, p.err)
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

// An agent that starts, over and over, on a file of another size and layout: a
// reader that opens the ring at any moment gets the ring of an agent, or is
// told why not yet, and never another's events.
func TestOpenWhileAnAgentStarts(t *testing.T) {
	producer := program(t, "producer")
	path := filepath.Join(t.TempDir(), "agent")
	for round := range 20 {
		l := ringbuf.Layouts()[round%len(ringbuf.Layouts())]
		capacity := 64 << (round % 4)
		var p *process
		var err error
		ready := make(chan struct{})
		go func() {
			defer close(ready)
			p, err = launch(t.Context(), producer, path, l, capacity, 10, round)
		}()
		for waiting := true; waiting; {
			select {
			case <-ready:
				waiting = false
			default:
			}
			if err := lookAt(path); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		seed := uint64(round)
		drain(t, path, l, capacity, &sequence{seed: seed}, 10, p)
	}
}

// lookAt opens a ring that may be in the making, and returns what must not
// come of it.
func lookAt(path string) error {
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ringbuf.ErrNotReady):
		return nil
	case errors.Is(err, ringbuf.ErrInvalid), errors.Is(err, ringbuf.ErrShrunk):
		return nil // the old header still stands in a file of the new size
	case err != nil:
		return err
	}
	_, err = r.Read(0, func(ringbuf.Batch) {})
	if errors.Is(err, ringbuf.ErrRestarted) || errors.Is(err, ringbuf.ErrShrunk) || errors.Is(err, ringbuf.ErrLapped) {
		err = nil
	}
	return errors.Join(err, r.Close())
}
