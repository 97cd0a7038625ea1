// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func withErrors() simulate.Traffic {
	t := simulate.KVCache()
	t.ErrorShare = 0.05
	return t
}

func TestTotalsMatchTheEventsThatAreRead(t *testing.T) {
	for _, layout := range ringbuf.Layouts() {
		t.Run(layout.String(), func(t *testing.T) {
			a := mustNew(t, simulate.Config{
				Lives: []simulate.Life{{Layout: layout, Capacity: 1024}},
				Rate:  1000, Operations: 5000, Traffic: withErrors(), Seed: 1,
			})
			must.OK(t, a.Start())
			c := newConsumer(t, a.Path())
			for !a.Done() {
				must.OK(t, a.Interval())
				c.drain()
			}
			must.OK(t, a.Stop())
			c.drainAll()

			totals := a.Totals()
			c.same(a)
			if totals.Dropped() != 0 {
				t.Errorf("%d events dropped", totals.Dropped())
			}
			if totals.Operations != 5000 || totals.Failed == 0 || totals.Failed > 1000 {
				t.Errorf("%d operations, %d failed", totals.Operations, totals.Failed)
			}
			if in, out := point(&totals, "nixl.memory.registered"), point(&totals, "nixl.memory.deregistered"); in == 0 || in != out {
				t.Errorf("registered %d, deregistered %d", in, out)
			}
		})
	}
}

func TestTotalsIncludeLivesWithOtherLayouts(t *testing.T) {
	a := mustNew(t, simulate.Config{
		Lives: []simulate.Life{
			{Layout: ringbuf.V1, Capacity: 256},
			{Layout: ringbuf.V4, Capacity: 64},
			{Layout: ringbuf.V1, Capacity: 512},
			{Layout: ringbuf.V2, Capacity: 256},
			{Layout: ringbuf.V3, Capacity: 1024},
		},
		Rate: 100, RestartEvery: 450 * time.Millisecond, Duration: 5 * time.Second,
		Traffic: withErrors(), Seed: 2,
	})
	c := newConsumer(t, a.Path())
	for !a.Done() {
		must.OK(t, a.Interval())
		c.drain()
	}
	must.OK(t, a.Stop())
	c.drainAll()

	totals := a.Totals()
	c.same(a)
	if totals.Starts != 12 {
		t.Errorf("%d lives of 450 ms in 5 s", totals.Starts)
	}
	if totals.Operations != 500 {
		t.Errorf("%d operations in 5 s at 100/s", totals.Operations)
	}
}

func TestSameSeedGivesTheSameEvents(t *testing.T) {
	events := func(seed uint64, interval time.Duration) []ringbuf.Event {
		a := mustNew(t, simulate.Config{
			Rate: 500, Operations: 800, RunInterval: interval,
			Traffic: withErrors(), Seed: seed,
		})
		must.OK(t, a.Start())
		c := newConsumer(t, a.Path())
		for !a.Done() {
			must.OK(t, a.Interval())
			c.drain()
		}
		must.OK(t, a.Stop())
		c.drainAll()
		return c.events
	}
	want := events(3, 100*time.Millisecond)
	if diff := cmp.Diff(want, events(3, 100*time.Millisecond)); diff != "" {
		t.Errorf("two runs differ: %s", diff)
	}
	if diff := cmp.Diff(want, events(3, 17*time.Millisecond)); diff != "" {
		t.Errorf("two run intervals differ: %s", diff)
	}
	if slices.Equal(want, events(4, 100*time.Millisecond)) {
		t.Error("two seeds don't differ")
	}
}

func TestStagedEventsAreDiscardedWithoutAFinalFlush(t *testing.T) {
	a := mustNew(t, simulate.Config{Rate: 100, NoFinalFlush: true})
	must.OK(t, a.Start())
	must.OK(t, a.Interval())
	must.OK(t, a.Stop())
	c := newConsumer(t, a.Path())
	c.drainAll()
	totals := a.Totals()
	c.same(a)
	if point(&totals, "nixl.memory.deregistered") != 0 {
		t.Error("deregistrations reached the ring without a final flush")
	}
	if registered := point(&totals, "nixl.events{nixl.event.category=memory,nixl.event.name=agent_memory_registered}"); totals.Discarded != registered {
		t.Errorf("discarded %d events, and registered %d regions", totals.Discarded, registered)
	}
}
