// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		_, totals := run(t, 1, simulate.Config{
			Lives: []simulate.Life{{Layout: layout, Capacity: 1024}}, Rate: 1000, Operations: 5000, Traffic: withErrors(), Seed: 1,
		})
		if totals.Operations != 5000 || totals.Dropped() != 0 {
			t.Errorf("%v: %d operations, want 5000; %d events were dropped", layout, totals.Operations, totals.Dropped())
		}
		if totals.Failed == 0 || totals.Failed > 1000 {
			t.Errorf("%v: %d of 5000 operations failed, want about a twentieth", layout, totals.Failed)
		}
		if in, out := point(&totals, "nixl.memory.registered"), point(&totals, "nixl.memory.deregistered"); in == 0 || in != out {
			t.Errorf("%v: registered %d, deregistered %d", layout, in, out)
		}
	}
}

func TestTotalsIncludeLivesWithOtherLayouts(t *testing.T) {
	_, totals := run(t, 1, simulate.Config{
		Lives: []simulate.Life{
			{Layout: ringbuf.V1, Capacity: 256},
			{Layout: ringbuf.V4, Capacity: 64},
			{Layout: ringbuf.V1, Capacity: 512},
			{Layout: ringbuf.V2, Capacity: 256},
			{Layout: ringbuf.V3, Capacity: 1024},
		},
		Rate: 100, RestartEvery: 450 * time.Millisecond, Duration: 5 * time.Second, Traffic: withErrors(), Seed: 2,
	})
	if totals.Starts != 12 || totals.Operations != 500 {
		t.Errorf("%d lives of 450 ms and %d operations in 5 s at 100/s", totals.Starts, totals.Operations)
	}
}

func TestSameSeedGivesTheSameEvents(t *testing.T) {
	events := func(seed uint64, interval time.Duration) []ringbuf.Event {
		c, _ := run(t, 1, simulate.Config{Rate: 500, Operations: 800, RunInterval: interval, Traffic: withErrors(), Seed: seed})
		return c.events
	}
	want := events(3, 100*time.Millisecond)
	for _, interval := range []time.Duration{100 * time.Millisecond, 17 * time.Millisecond} {
		if diff := cmp.Diff(want, events(3, interval)); diff != "" {
			t.Errorf("with a run interval of %v: %s", interval, diff)
		}
	}
	if slices.Equal(want, events(4, 100*time.Millisecond)) {
		t.Error("two seeds don't differ")
	}
}

func TestStagedEventsAreDiscardedWithoutAFinalFlush(t *testing.T) {
	_, totals := run(t, 1, simulate.Config{Rate: 100, Operations: 10, NoFinalFlush: true})
	if point(&totals, "nixl.memory.deregistered") != 0 {
		t.Error("deregistrations reached the ring without a final flush")
	}
	if registered := point(&totals, "nixl.events{nixl.event.category=memory,nixl.event.name=agent_memory_registered}"); totals.Discarded != registered {
		t.Errorf("discarded %d events, and registered %d regions", totals.Discarded, registered)
	}
}
