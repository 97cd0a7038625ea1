// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// small is an agent that has 25 operations, about 100 events, per flush.
func small(layout ringbuf.Layout, capacity int) simulate.Config {
	return simulate.Config{Lives: []simulate.Life{{Layout: layout, Capacity: capacity}}, Rate: 250, Operations: 500, Traffic: withErrors(), Seed: 5}
}

// The test compares an agent that loses events in every way with one that loses none.
func TestEveryEventIsWrittenOrDroppedOnce(t *testing.T) {
	for _, layout := range ringbuf.Layouts() {
		for _, capacity := range []int{2, 4, 64, 128} {
			t.Run(fmt.Sprintf("%v/%d", layout, capacity), func(t *testing.T) {
				t.Parallel() // see drainAll
				_, lossless := run(t, 1, small(layout, 4096))
				_, totals := run(t, 3, small(layout, capacity))
				reports := totals.Written + totals.Dropped() - lossless.Written // of V4, at most one per flush
				if layout < ringbuf.V4 && reports != 0 || reports > totals.Flushes {
					t.Errorf("%d more events than without drops: %+v", reports, totals)
				}
				if totals.Dropped() == 0 || lossless.Dropped() != 0 {
					t.Errorf("%d events dropped, and %d by the other agent", totals.Dropped(), lossless.Dropped())
				}
			})
		}
	}
}

func TestV4ReportsDropsOfStaging(t *testing.T) {
	// The ring is drained after each flush, but can't hold a full batch and a report.
	_, totals := run(t, 1, small(ringbuf.V4, 32))
	if reported := point(&totals, "nixl.telemetry.events.dropped"); reported == 0 || reported > totals.DroppedStaging {
		t.Errorf("%d events dropped in staging, %d reported", totals.DroppedStaging, reported)
	}
}

func TestLateAgentCatchesUpWithoutDrops(t *testing.T) {
	for _, layout := range ringbuf.Layouts() {
		a := mustNew(t, simulate.Config{
			Lives: []simulate.Life{{Layout: layout, Capacity: 512}}, Rate: 1000, Seed: 6,
		})
		must.OK(t, a.Start())
		c := newConsumer(t, a.Path())
		must.OK(t, a.Tick(500*time.Millisecond)) // 500 operations are due, 2,000 events
		c.drain()
		late := a.Totals().Operations
		if late < 100 || late > 128 {
			t.Errorf("%v: %d operations in one flush", layout, late)
		}
		for range 30 {
			must.OK(t, a.Tick(100*time.Millisecond))
			c.drain()
		}
		totals := a.Totals()
		if totals.Operations != 3500 {
			t.Errorf("%v: %d operations, want 3,500", layout, totals.Operations)
		}
		if totals.Dropped() != 0 {
			t.Errorf("%v: %d events dropped", layout, totals.Dropped())
		}
	}
}
