// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestUnreadEventsAreCountedAtARestart(t *testing.T) {
	for _, layout := range ringbuf.Layouts() {
		a := mustNew(t, simulate.Config{
			Lives: []simulate.Life{{Layout: layout}, {Layout: ringbuf.V4, Capacity: 64}},
			Rate:  100, Traffic: withErrors(), Seed: 7,
		})
		must.OK(t, a.Start())
		must.OK(t, a.Interval())
		must.OK(t, a.Interval())
		must.OK(t, a.Restart()) // the last flush is unread, too
		totals := a.Totals()
		if totals.Unread == 0 || totals.Unread != totals.Written {
			t.Errorf("%v: %d events written, %d unread", layout, totals.Written, totals.Unread)
		}
		if totals.Layout != "v4" || totals.Capacity != 64 || totals.Starts != 2 {
			t.Errorf("%v: after a restart %s, %d slots, start %d", layout, totals.Layout, totals.Capacity, totals.Starts)
		}
	}
}

func TestAgentIsDownForAnIntervalBetweenLives(t *testing.T) {
	a := mustNew(t, simulate.Config{Rate: 100, RestartEvery: 200 * time.Millisecond, Seed: 8})
	var starts []int
	for range 7 {
		must.OK(t, a.Interval())
		starts = append(starts, a.Totals().Starts)
	}
	// One interval to start, two intervals of a life, and so on.
	if diff := cmp.Diff([]int{1, 1, 1, 2, 2, 2, 3}, starts); diff != "" {
		t.Error(diff)
	}
	if n := a.Totals().Operations; n != 40 {
		t.Errorf("%d operations in two lives of 200 ms at 100/s", n)
	}
}

func TestKilledAgentLosesStagedEvents(t *testing.T) {
	a := mustNew(t, simulate.Config{Rate: 100, Seed: 9})
	must.OK(t, a.Start())
	must.OK(t, a.Kill())
	totals := a.Totals()
	if totals.Written != 0 || totals.Discarded == 0 {
		t.Errorf("a killed agent wrote %d events and lost %d", totals.Written, totals.Discarded)
	}
	must.OK(t, a.Interval())
	must.OK(t, a.Interval())
	must.OK(t, a.Stop())
	c := newConsumer(t, a.Path())
	c.drain()
	c.same(a)
	if got := a.Totals().Starts; got != 2 {
		t.Errorf("%d starts", got)
	}
}

func TestStoppedAgentKeepsItsRingAndReturnsErrStopped(t *testing.T) {
	a := mustNew(t, simulate.Config{Rate: 100})
	must.OK(t, a.Start())
	if err := a.Remove(); err == nil {
		t.Error("the ring of a running agent was removed")
	}
	must.OK(t, a.Stop())
	must.OK(t, a.Stop())
	if !a.Done() {
		t.Error("a stopped agent isn't done")
	}
	for what, err := range map[string]error{"interval": a.Interval(), "restart": a.Restart()} {
		if !errors.Is(err, simulate.ErrStopped) {
			t.Errorf("%s of a stopped agent: %v", what, err)
		}
	}
	if err := a.Start(); err == nil {
		t.Error("a stopped agent started")
	}
	if _, err := os.Stat(a.Path()); err != nil {
		t.Errorf("the ring of a stopped agent is gone: %v", err)
	}
	must.OK(t, a.Remove())
	must.OK(t, a.Remove())
	if _, err := os.Stat(a.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a removed ring: %v", err)
	}
}

func TestTruncatedRingStopsTheAgent(t *testing.T) {
	a := mustNew(t, simulate.Config{Rate: 100})
	must.OK(t, a.Start())
	must.OK(t, a.Interval())
	must.OK(t, os.Truncate(a.Path(), 0))
	if err := a.Interval(); !errors.Is(err, ringbuf.ErrShrunk) {
		t.Errorf("flush to a truncated ring: %v", err)
	}
	if err := a.Interval(); !errors.Is(err, simulate.ErrStopped) {
		t.Errorf("after that: %v", err)
	}
	must.OK(t, a.Stop())
}

func TestTimesOfV1ComeFromTheClock(t *testing.T) {
	clk := newClock()
	a := mustNew(t, simulate.Config{
		Lives: []simulate.Life{{Layout: ringbuf.V1}}, Rate: 100, Now: clk.Now, Seed: 10,
	})
	must.OK(t, a.Start())
	c := newConsumer(t, a.Path())
	start := clk.now
	for range 10 {
		clk.advance(100 * time.Millisecond)
		must.OK(t, a.Interval())
	}
	must.OK(t, a.Stop())
	c.drain()
	last := map[ringbuf.Category]uint64{}
	for _, e := range c.events {
		at := time.UnixMicro(int64(e.TimestampMicros))
		if at.Before(start) || at.After(clk.now.Add(time.Millisecond)) {
			t.Fatalf("event at %v, outside %v to %v", at, start, clk.now)
		}
		if e.TimestampMicros < last[e.Category] {
			t.Fatalf("%v event at %v is older than the one before", e.Category, at)
		}
		last[e.Category] = e.TimestampMicros
	}
	if n := a.Totals().Operations; n != 100 {
		t.Errorf("%d operations in 1 s at 100/s", n)
	}
}
