// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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

// loopHarness is a loop with a ring, and the ring's source.
type loopHarness struct {
	t *testing.T
	*Loop
	writer  *ringbuf.Writer
	reader  *ringbuf.Reader
	gate    chan struct{} // the loop hangs at the next event while it is full
	onClose func()        // called once when a ring is closed, unless it is nil

	rounds, events, hangs, retired atomic.Int64
	closed                         sync.Map // readers
}

// inBubble runs a test with a loop, and stops it. Its clock is that of a bubble of synctest.
func inBubble(t *testing.T, test func(t *testing.T, d *loopHarness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		shape, err := tally.NewShape(tally.Config{})
		must.OK(t, err)
		d := &loopHarness{t: t, gate: make(chan struct{}, 1)}
		_, d.writer, d.reader = inMemory(t, 64)
		d.Loop = NewLoop(LoopConfig{
			Config: Config{Shape: shape, RunInterval: 100 * time.Millisecond, StaleAfter: time.Minute, Handler: Handler{Events: func(Agent, ringbuf.Batch) {
				d.gate <- struct{}{}
				<-d.gate
			}}},
			ObserveLag: func(time.Duration) { d.rounds.Add(1) }, ObserveEvents: func(n uint64) { d.events.Add(int64(n)) },
			Report: func(n notice.Notice) {
				if n.Kind == notice.DrainHangs {
					d.hangs.Add(1)
				}
			},
		})
		d.open(d.reader)
		test(t, d)
		must.OK(t, d.Stop(t.Context()))
	})
}

// hang makes the loop hang until release is called.
func (d *loopHarness) hang() (release func()) {
	d.t.Helper()
	d.gate <- struct{}{}
	d.push()
	time.Sleep(idleStep) // in a bubble of synctest: the ring is due before
	return func() {
		<-d.gate
		synctest.Wait()
	}
}

func (d *loopHarness) push() {
	d.t.Helper()
	must.OK(d.t, d.writer.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
}

func (d *loopHarness) open(r *ringbuf.Reader) {
	d.Send(Offer{Agent: Agent{ID: agentPath, Path: agentPath}, Reader: r, From: d})
}

// loopHarness implements Source.

func (d *loopHarness) Close(r *ringbuf.Reader) {
	if fn := d.onClose; fn != nil {
		d.onClose = nil
		fn()
	}
	d.closed.Store(r, true)
	if err := r.Close(); err != nil {
		d.t.Error(err)
	}
}

func (d *loopHarness) Reopen(Agent, *ringbuf.Reader) { d.t.Error("the ring is to be opened again") }

func (d *loopHarness) Retire(_ Agent, r *ringbuf.Reader) {
	d.retired.Add(1)
	d.Close(r)
}

func (d *loopHarness) Answer(_ Agent, r *ringbuf.Reader, refused error) {
	if refused != nil {
		d.Close(r)
	}
}

func (d *loopHarness) isClosed(r *ringbuf.Reader) bool {
	_, closed := d.closed.Load(r)
	return closed
}

// collect returns a collection, and the number of events of each of its agents.
func (d *loopHarness) collect(timeout time.Duration) (c Collection, events []uint64, err error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), timeout)
	defer cancel()
	c, err = d.Collect(ctx, false)
	for _, s := range c.Snapshots {
		events = append(events, s.Totals.Requests(tally.Transmit).Events)
	}
	return c, events, err
}

// A collection doesn't wait for a loop that hangs. The caller may have too little time to know that, for
// example because reading the stores took all of it.
func TestCollectionReturnsInTime(t *testing.T) {
	type result struct {
		Took   time.Duration
		Late   bool
		Events []uint64
		Hangs  int64 // number of notices
	}
	for _, c := range []struct {
		hangs   bool
		timeout time.Duration
		want    result
	}{
		{true, 10 * time.Second, result{hungAfter, true, nil, 1}},
		{true, leastAnswer, result{leastAnswer, true, nil, 1}},
		{true, leastAnswer - 1, result{leastAnswer - 1, true, nil, 0}},
		{false, 0, result{0, true, nil, 0}},
		{false, 10 * time.Second, result{0, false, []uint64{0}, 0}},
	} {
		inBubble(t, func(t *testing.T, d *loopHarness) {
			release := func() {}
			for round := range uint64(2) {
				if c.hangs {
					release = d.hang()
				}
				for range 5 {
					d.hangs.Store(0)
					began := time.Now()
					_, events, err := d.collect(c.timeout)
					got := result{time.Since(began), errors.Is(err, context.DeadlineExceeded), events, d.hangs.Load()}
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("hangs %v, timeout %v: (-want +got)\n%s", c.hangs, c.timeout, diff)
					}
				}
				if release(); c.hangs {
					if _, events, err := d.collect(time.Minute); err != nil || !slices.Equal(events, []uint64{round + 1}) {
						t.Errorf("after it has hung: %v events, %v", events, err)
					}
				}
			}
			synctest.Wait()
			if n := d.owner.collections; c.hangs && n > 2+2 { // the first in each round may have begun before the loop hung
				t.Errorf("%d collections are made, although nobody waits for most of them", n)
			}
		})
	}
}

func TestStopReturnsWhenItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, d *loopHarness) {
		release := d.hang()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop returns %v", err)
		}
		if release(); !d.isClosed(d.reader) {
			t.Error("the ring wasn't closed after the loop stopped hanging")
		}
	})
}

func TestLoopReportsRoundsAndEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, d *loopHarness) {
		for range 3 {
			d.push()
			time.Sleep(4 * idleStep) // in a bubble of synctest
		}
		if rounds, events := d.rounds.Load(), d.events.Load(); rounds < 10 || events != 3 {
			t.Errorf("%d rounds and %d events are reported, want 10 or more, and 3", rounds, events)
		}
	})
}

// Otherwise, its totals would lack agents.
// A round is due some time after the last one began, and not after it ended.
func TestRoundThatTookLongIsFollowedByAnotherAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, d *loopHarness) {
		synctest.Wait() // until the ring is open
		release := d.hang()
		before := d.rounds.Load()
		release()
		if n := d.rounds.Load() - before; n != 1 {
			t.Errorf("%d rounds begin at once, want 1", n)
		}
	})
}

func TestCollectionThatStopInterruptsFails(t *testing.T) {
	inBubble(t, func(t *testing.T, d *loopHarness) {
		release := d.hang()
		var errs [2]error
		go func() { _, errs[0] = d.Collect(t.Context(), false) }()
		synctest.Wait()
		go func() { errs[1] = d.Stop(t.Context()) }()
		synctest.Wait()
		if release(); !errors.Is(errs[0], errStopped) || errs[1] != nil {
			t.Errorf("Collect returns %v, want %v; Stop returns %v", errs[0], errStopped, errs[1])
		}
	})
}

func TestNothingStaysOpenAfterStop(t *testing.T) {
	inBubble(t, func(t *testing.T, d *loopHarness) {
		_, _, meanwhile := inMemory(t, 64)
		_, _, late := inMemory(t, 64)
		d.onClose = func() { d.open(meanwhile) }
		must.OK(t, d.Stop(t.Context()))
		if d.open(late); !d.isClosed(d.reader) || !d.isClosed(meanwhile) || !d.isClosed(late) {
			t.Errorf("closed are: the ring %v, one that was opened during the last step %v, one that was opened after Stop %v",
				d.isClosed(d.reader), d.isClosed(meanwhile), d.isClosed(late))
		}
		if _, _, err := d.collect(time.Minute); !errors.Is(err, errStopped) {
			t.Errorf("a late collection returns %v", err)
		}
	})
}

func TestExitedAgentIsReportedUntilItsEventsAreDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, d *loopHarness) {
		d.push()
		d.Send(Attended{ID: agentPath, Reader: d.reader, Up: UpNo})
		time.Sleep(time.Hour) // in a bubble of synctest
		c, before, _ := d.collect(time.Minute)
		d.Delivered(c)
		time.Sleep(2 * idleStep) // in a bubble of synctest
		if _, after, _ := d.collect(time.Minute); len(before) != 1 || len(after) != 0 || d.retired.Load() != 1 {
			t.Errorf("%d agents are reported before the delivery, %d afterwards, %d are retired", len(before), len(after), d.retired.Load())
		}
	})
}
