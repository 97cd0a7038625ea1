// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The ring fills many times while the consumer blocks.
func TestBlockedConsumerLosesNoEvent(t *testing.T) {
	const intervals, capacity = 30, 512
	dir := t.TempDir()
	sim, err := simulate.New(simulate.Config{
		Path:  filepath.Join(dir, "agent"),
		Lives: []simulate.Life{{Layout: ringbuf.V4, Capacity: capacity}},
		Rate:  1000, Traffic: simulate.KVCache(), Seed: 1, Journal: oracle.New(),
	})
	must.OK(t, err)
	must.OK(t, sim.Start())
	h := newHarness(t, dir, often)
	blocked, release := make(chan struct{}, 1), make(chan struct{})
	h.consume = func(ctx context.Context, _ pmetric.Metrics) error {
		select {
		case blocked <- struct{}{}:
		default:
		}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h.start()
	wait(t, blocked, "blocked consumer")
	for range intervals {
		must.OK(t, sim.Interval())
		drained(t, sim.Path())
	}
	must.OK(t, sim.Stop())
	close(release)
	a := one(t, h.shutdown())

	totals := sim.Totals()
	if totals.Dropped() > 0 || totals.Written < 10*capacity {
		t.Fatalf("the agent wrote %d events and dropped %d", totals.Written, totals.Dropped())
	}
	if d := cmp.Diff(eventsOf(totals.Points), a.events()); d != "" {
		t.Errorf("events (-written +reported)\n%s", d)
	}
	totals.Points["nixl.telemetry.ring.torn_groups"], totals.Points["nixl.telemetry.ring.saturations"] = int64(0), int64(0)
	for _, point := range []string{
		transmitted, "nixl.transfer.io{nixl.transfer.direction=receive}", "nixl.memory.registered",
		"nixl.telemetry.ring.torn_groups", "nixl.telemetry.ring.saturations",
	} {
		if got, want := a.int(point), totals.Points[point]; got != want {
			t.Errorf("%s is %d, want %d", point, got, want)
		}
	}
}

// eventsOf returns how many events an agent wrote, by their attributes.
func eventsOf(points oracle.Points) map[string]int64 {
	events := make(map[string]int64)
	for name, n := range points {
		if attributes, ok := strings.CutPrefix(name, "nixl.events"); ok {
			events[attributes], _ = n.(int64)
		}
	}
	return events
}

// The collection that reports a ring first may have opened it. The processor
// cumulative_to_delta drops a first point at its start time.
func TestFirstPointsEndAfterTheirStart(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "agent", ringbuf.V4, 64), write(1000, 20, 10)...)
	h := newHarness(t, dir, never)
	h.on.now = newClock().now // a clock that stands still
	a := one(t, h.start().shutdown())
	if a.start >= a.time {
		t.Errorf("points are from %v to %v", a.start, a.time)
	}
}
