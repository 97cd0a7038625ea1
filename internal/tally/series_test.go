// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Backends reject two points with the same attributes.
func TestSeriesHaveDifferentAttributes(t *testing.T) {
	a := NewAgent(shapeOf(t, Config{}))
	a.Add(batchOf(t, ringbuf.V1,
		ringbuf.NewNamedEvent(8, "x", 1), ringbuf.NewNamedEvent(-1, "x", 1), ringbuf.NewNamedEvent(1<<30, "x", 1),
		ringbuf.NewNamedEvent(99, "unknown_event_21", 1),
		ringbuf.NewNamedEvent(ringbuf.CategoryMemory, "agent_tx_bytes", 1),
		ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "a\xff", 1), ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "a\uFFFD", 1)))
	a.Add(batchOf(t, ringbuf.V2,
		ringbuf.Event{Category: 12, Type: 21}, ringbuf.Event{Category: -5, Type: 21},
		ringbuf.Event{Category: ringbuf.CategoryMemory, Type: ringbuf.TypeTxBytes}))
	a.Add(batchOf(t, ringbuf.V4, ringbuf.Event{Type: 21}))

	got := map[string]uint64{}
	a.Events(func(category, name string, n uint64) {
		key := category + "/" + name
		if _, twice := got[key]; twice {
			t.Errorf("%s is reported twice", key)
		}
		got[key] = n
	})
	want := map[string]uint64{
		"unknown/x": 3, "unknown/unknown_event_21": 4, "memory/agent_tx_bytes": 2, "backend/a\uFFFD": 2,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// In an older layout, the number may have another meaning.
func TestTypeUnknownToItsLayoutHasNoName(t *testing.T) {
	for layout, want := range map[ringbuf.Layout]string{
		ringbuf.V2: "unknown/unknown_event_20",
		ringbuf.V3: "unknown/unknown_event_20",
		ringbuf.V4: "telemetry/agent_telemetry_events_dropped",
	} {
		a := NewAgent(shapeOf(t, Config{}))
		a.Add(batchOf(t, layout, ringbuf.Event{Category: -1, Type: ringbuf.TypeEventsDropped, Value: 1}))
		a.Events(func(category, name string, _ uint64) {
			if got := category + "/" + name; got != want {
				t.Errorf("layout %v: %s, want %s", layout, got, want)
			}
		})
	}
}
