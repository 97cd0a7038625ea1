// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// memory is the Backing of a ring in plain memory.
type memory []byte

func (m memory) Stat() (ringbuf.FileState, error) {
	return ringbuf.FileState{Size: int64(len(m))}, nil
}

var clock atomic.Int64

// Now advances the time, so that a reader doesn't wait at position 0.
func (memory) Now() time.Time { return time.Unix(clock.Add(3600), 0) }

func (memory) Guard(fn func()) error {
	fn()
	return nil
}

// inMemory creates a ring in plain memory.
func inMemory(tb testing.TB, capacity int) (memory, *ringbuf.Writer, *ringbuf.Reader) {
	tb.Helper()
	mem := make(memory, ringbuf.V4.FileSize(uint64(capacity)))
	w, err1 := ringbuf.NewWriter(mem, mem, ringbuf.V4, capacity)
	r, err2 := ringbuf.NewReader(mem, mem, ringbuf.Consume)
	must.OK(tb, errors.Join(err1, err2))
	return mem, w, r
}

// loopHarness is a loop and its source of rings. It records their reports.
type loopHarness struct {
	t *testing.T
	*Loop

	mu      sync.Mutex
	notices []notice.Notice
	closed  map[*ringbuf.Reader]bool
	retired []string
	stuck   chan struct{} // blocks draining of the agent stuck unless it is nil

	rounds, events atomic.Uint64 // that the loop has reported
}

// newStuck returns a loop that hangs until release is called. It must be called in a bubble of synctest.
func newStuck(t *testing.T) (d *loopHarness, r *ringbuf.Reader, release func()) {
	t.Helper()
	d = newLoopHarness(t)
	w, r := d.inMemory()
	d.open("stuck", r)
	release = d.hang()
	d.push(w)
	time.Sleep(idleStep) // synctest: the ring is due before
	return d, r, release
}

func newLoopHarness(t *testing.T) *loopHarness {
	t.Helper()
	shape, err := tally.NewShape(tally.Config{})
	must.OK(t, err)
	d := &loopHarness{t: t, closed: make(map[*ringbuf.Reader]bool)}
	d.Loop = NewLoop(LoopConfig{
		ObserveLag: func(time.Duration) { d.rounds.Add(1) }, ObserveEvents: func(n uint64) { d.events.Add(n) },
		Config: Config{Shape: shape, RunInterval: 100 * time.Millisecond, StaleAfter: time.Minute, Handler: Handler{Events: d.tap}},
		Report: d.report,
	})
	return d
}

func (d *loopHarness) report(n notice.Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notices = append(d.notices, n)
}

// hangs returns the notices that the loop hangs.
func (d *loopHarness) hangs() (list []notice.Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.notices {
		if n.Kind == notice.DrainHangs {
			list = append(list, n)
		}
	}
	return list
}

// hang makes the next event of the agent stuck block its loop until release is
// called.
func (d *loopHarness) hang() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{})
	d.stuck = c
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stuck = nil
		close(c)
	}
}

func (d *loopHarness) tap(a Agent, _ ringbuf.Batch) {
	d.mu.Lock()
	c := d.stuck
	d.mu.Unlock()
	if c != nil && a.Name == "stuck" {
		<-c
	}
}

// Close implements Source.
func (d *loopHarness) Close(r *ringbuf.Reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed[r] = true
	if err := r.Close(); err != nil {
		d.t.Error(err)
	}
}

// Reopen implements Source.
func (d *loopHarness) Reopen(a Agent, _ *ringbuf.Reader) {
	d.t.Errorf("%s is to be opened again", a.Path)
}

// Retire implements Source.
func (d *loopHarness) Retire(a Agent, r *ringbuf.Reader) {
	d.Close(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retired = append(d.retired, a.Path)
}

// Answer implements Source.
func (d *loopHarness) Answer(_ Agent, r *ringbuf.Reader, refused error) {
	if refused != nil {
		d.Close(r)
	}
}

func (d *loopHarness) isClosed(r *ringbuf.Reader) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed[r]
}

func (d *loopHarness) open(name string, r *ringbuf.Reader) {
	d.Send(Opened{Agent: Agent{ID: "/rings/" + name, Name: name, Dir: "/rings", Path: "/rings/" + name}, Reader: r, From: d})
}

// inMemory creates a ring in plain memory.
func (d *loopHarness) inMemory() (*ringbuf.Writer, *ringbuf.Reader) {
	d.t.Helper()
	_, w, r := inMemory(d.t, 64)
	return w, r
}

func (d *loopHarness) push(w *ringbuf.Writer) {
	d.t.Helper()
	must.OK(d.t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
}

// collect returns the reported number of requests of each agent, by name.
func (d *loopHarness) collect() (Collection, map[string]int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	c, err := d.Collect(ctx, false)
	if (err != nil) != (len(c.Snapshots) == 0) && err != nil {
		d.t.Errorf("%v, with %d agents", err, len(c.Snapshots))
	}
	if ctx.Err() != nil {
		d.t.Error("a collection takes until its context ends")
	}
	counts := make(map[string]int)
	for _, s := range c.Snapshots {
		if _, again := counts[s.Name]; again {
			d.t.Errorf("%s is reported twice", s.Name)
		}
		counts[s.Name] = int(s.Totals.Requests(tally.Transmit).Events)
	}
	return c, counts
}

func (d *loopHarness) want(counts map[string]int) {
	d.t.Helper()
	_, got := d.collect()
	for name, n := range counts {
		if got[name] != n {
			d.t.Errorf("%s is reported with %d events, want %d", name, got[name], n)
		}
	}
	if len(got) != len(counts) {
		d.t.Errorf("reported are %v, want %v", got, counts)
	}
}

func (d *loopHarness) stop() {
	d.t.Helper()
	if err := d.Stop(d.t.Context()); err != nil {
		d.t.Error(err)
	}
}

func TestCollectionsDoNotWaitForAHangingLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoopHarness(t)
		w, r := d.inMemory()
		d.open("stuck", r)
		for round := 1; round <= 2; round++ {
			release := d.hang()
			d.push(w)
			d.want(nil)
			if n := d.hangs(); len(n) != round {
				t.Errorf("%d notices after hanging %d times: %v", len(n), round, n)
			}
			release()
			synctest.Wait()
			d.want(map[string]int{"stuck": round})
		}
		d.stop()
	})
}

func TestLoopDoesntAnswerCollectionsThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, release := newStuck(t)
		for range 10 {
			d.want(nil)
		}
		release()
		synctest.Wait()
		d.want(map[string]int{"stuck": 1})
		d.stop()
		if n := d.owner.collections; n > 2 { // the first may have begun before the loop hung
			t.Errorf("%d collections, want those that are answered", n)
		}
	})
}

func TestCollectReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, release := newStuck(t)
		ctx, cancel := context.WithTimeout(t.Context(), hungAfter/2)
		defer cancel()
		begun := time.Now()
		c, err := d.Collect(ctx, false)
		if !errors.Is(err, context.DeadlineExceeded) || len(c.Snapshots) != 0 || time.Since(begun) > hungAfter/2 {
			t.Errorf("after %v: %v, %v", time.Since(begun), c.Snapshots, err)
		}
		release()
		d.stop()
	})
}

// The caller had too little time, for example because reading the stores took all of it.
func TestCollectionWithoutTimeIsNoSignThatTheLoopHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoopHarness(t)
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		if _, err := d.Collect(ctx, false); !errors.Is(err, context.DeadlineExceeded) || len(d.hangs()) > 0 {
			t.Errorf("error %v, notices %v", err, d.hangs())
		}
		d.stop()
	})
}

func TestStopReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r, release := newStuck(t)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop returns %v", err)
		}
		release() // then the loop ends
		synctest.Wait()
		if !d.isClosed(r) {
			t.Error("the ring wasn't closed after the loop stopped hanging")
		}
	})
}

func TestLoopReportsRoundsAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoopHarness(t)
		w, r := d.inMemory()
		d.open("agent", r)
		for range 3 {
			d.push(w)
		}
		time.Sleep(10 * idleStep) // in a bubble of synctest
		if rounds, events := d.rounds.Load(), d.events.Load(); rounds < 10 || events != 3 {
			t.Errorf("%d rounds and %d events are reported, want 10 or more, and 3", rounds, events)
		}
		d.stop()
	})
}

// Otherwise, its totals would lack agents.
func TestCollectionThatStopInterruptsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, release := newStuck(t)
		synctest.Wait() // until the loop hangs
		var errs [2]error
		go func() { _, errs[0] = d.Collect(t.Context(), false) }()
		synctest.Wait()
		go func() { errs[1] = d.Stop(t.Context()) }()
		synctest.Wait()
		release()
		synctest.Wait()
		if !errors.Is(errs[0], errStopped) || errs[1] != nil {
			t.Errorf("Collect returns %v, want %v; Stop returns %v", errs[0], errStopped, errs[1])
		}
	})
}

func TestNothingStaysOpenAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoopHarness(t)
		_, before := d.inMemory()
		d.open("before", before)
		d.stop()
		_, after := d.inMemory()
		d.open("after", after)
		for name, r := range map[string]*ringbuf.Reader{"before": before, "after": after} {
			if !d.isClosed(r) {
				t.Errorf("the ring that was opened %s Stop is still open", name)
			}
		}
		d.want(nil) // a late collection doesn't wait
	})
}

func TestExitedAgentIsReportedUntilItsEventsAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoopHarness(t)
		w, r := d.inMemory()
		d.open("exited", r)
		d.push(w)
		d.Send(Attended{ID: "/rings/exited", Reader: r, Known: true})
		d.collect()
		time.Sleep(time.Hour) // in a bubble of synctest
		d.want(map[string]int{"exited": 1})
		c, _ := d.collect()
		d.Delivered(c)
		time.Sleep(2 * time.Second) // in a bubble of synctest
		d.want(nil)
		if len(d.retired) != 1 {
			t.Errorf("retired are %v", d.retired)
		}
		d.stop()
	})
}
