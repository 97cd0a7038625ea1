// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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
