// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// The receiver and package rings convert the same totals to metrics with separate
// code. These tests check that both export the same metrics for all kinds of
// events and for everything that can happen to a ring.

// exporter starts to read a directory of rings. Its result stops it and returns
// what it exported.
type exporter func(t *testing.T, dir string) (stop func() pmetric.Metrics)

// withEvents enables the metric that is off by default.
func withEvents(cfg *nixlshmreceiver.Config) { cfg.Metrics.NixlEvents.Enabled = true }

func throughReceiver(change ...func(*nixlshmreceiver.Config)) exporter {
	return func(t *testing.T, dir string) func() pmetric.Metrics {
		c := startReceiver(t, dir, append(change, withEvents)...)
		return func() pmetric.Metrics {
			c.stop()
			return only(t, c.all())
		}
	}
}

func throughRings(c rings.Config) exporter {
	return func(t *testing.T, dir string) func() pmetric.Metrics {
		b := otlpfile.NewSink(t)
		c.Events = true
		c.Directories, c.RunInterval, c.Logger = []string{dir}, 2*time.Millisecond, slog.New(slog.DiscardHandler)
		p, err := rings.Open(c)
		must.OK(t, err)
		provider := pipeline(t, b, sdkmetric.WithProducer(p))
		return func() pmetric.Metrics {
			must.OK(t, provider.Shutdown(t.Context()))
			must.OK(t, p.Close())
			return only(t, b.Collections())
		}
	}
}

// The rings of this test produce every metric of the catalog.
func TestRingsExportEveryMetricLikeTheReceiver(t *testing.T) {
	seen := make(map[string]bool)
	for name, run := range map[string]func(*testing.T, exporter) map[string]object{
		"a ring with a history": ringWithAHistory,
		"names of all kinds":    ringWithNames,
	} {
		t.Run(name, func(t *testing.T) {
			collector := run(t, throughReceiver())
			equal(t, collector, run(t, throughRings(rings.Config{})))
			for name := range collector {
				seen[name] = true
			}
		})
	}
	for _, m := range semconv.NIXL() {
		if !seen[m.Name] && m.Name != semconv.AgentUp.Name { // normalize omits it
			t.Errorf("%s was never exported", m.Name)
		}
	}
}

// ringWithAHistory exports a ring that was full, whose agent restarted, and whose
// events another process read. It also has values that overflow. The number of
// occurrences of each differs, so swapped metrics fail the test.
func ringWithAHistory(t *testing.T, start exporter) map[string]object {
	t.Helper()
	const slots, restarts, foreignReads, torn = 8, 3, 2, 4
	dir := t.TempDir()
	path := filepath.Join(dir, agentName)
	ring := newRing(t, path, slots)
	push(t, ring, slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)}, slots-1)...)
	stop := start(t, dir)
	awaitDrain(t, ring)
	// Push two events past position 0. An agent at position 0 may be restarting, so
	// the reader doesn't deliver its last event until the next one is written.
	push(t, ring, ringbuf.NewEvent(ringbuf.TypeErrCanceled, 5), ringbuf.NewEvent(ringbuf.TypeErrCanceled, 1))
	awaitDrain(t, ring)
	for _, e := range []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeEventsDropped, math.MaxUint64),
		ringbuf.NewEvent(ringbuf.TypeEventsDropped, math.MaxUint64),
		ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, math.MaxUint64),
		ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, 7),
		ringbuf.NewEvent(ringbuf.Type(99), 1),
	} {
		push(t, ring, e)
		awaitDrain(t, ring)
	}
	whole := transfer(0, 1<<20, 3*time.Microsecond, 8*time.Microsecond).events
	for _, group := range [][]ringbuf.Event{whole, transfer(1, 1<<10, time.Second, time.Minute).events} {
		push(t, ring, group...)
		awaitDrain(t, ring)
	}
	for range torn {
		push(t, ring, whole[0], whole[2], whole[3])
		awaitDrain(t, ring)
	}
	for range foreignReads {
		ringtest.Edit(t, path, func(h *ringtest.Header) { h.WritePos++; h.ReadPos++ })
		push(t, ring, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1))
		awaitDrain(t, ring)
	}
	for range restarts {
		ring = newRing(t, path, slots)
		push(t, ring, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 2))
		awaitDrain(t, ring)
	}
	got := normalize(t, stop())
	for name, want := range map[string]int64{
		semconv.RingCapacity.Name: slots, semconv.RingSaturations.Name: 1, semconv.RingRestarts.Name: restarts,
		semconv.RingForeignReads.Name: foreignReads, semconv.RingTornGroups.Name: torn,
	} {
		if text := fmt.Sprint(got[name]); !strings.Contains(text, fmt.Sprintf("asInt:%d ", want)) {
			t.Errorf("%s isn't %d: %s", name, want, text)
		}
	}
	return got
}

// ringWithNames exports a ring with more event names than the limit, both names
// with summed values and names that are only counted. It also has errors that the
// catalog doesn't know and an unknown category.
func ringWithNames(t *testing.T, start exporter) map[string]object {
	t.Helper()
	dir := t.TempDir()
	ring, err := ringbuf.Create(filepath.Join(dir, agentName), ringbuf.V1, capacity)
	must.OK(t, err)
	defer ring.Close()
	push(t, ring,
		ringbuf.NewNamedEvent(ringbuf.CategoryError, "NIXL_ERR_SOMETHING_NEW", 3),
		ringbuf.NewNamedEvent(ringbuf.CategoryError, "NIXL_ERR_BACKEND", 4),
		ringbuf.NewNamedEvent(ringbuf.Category(77), "agent_tx_bytes", 5),
		ringbuf.NewNamedEvent(ringbuf.CategorySystem, "huge", math.MaxUint64),
		ringbuf.NewNamedEvent(ringbuf.CategorySystem, "huge", math.MaxUint64),
	)
	for i := range 230 {
		push(t, ring,
			ringbuf.NewNamedEvent(ringbuf.CategoryTransfer, fmt.Sprint("counted ", i), 1),
			ringbuf.NewNamedEvent(ringbuf.CategoryConnection, fmt.Sprint("summed up ", i), uint64(i)))
	}
	return normalize(t, start(t, dir)())
}

// A program that exports rings itself exports the same metrics as the Collector, including the
// rings' health.
func TestRingsExportTheSameMetricsAsTheReceiver(t *testing.T) {
	type test struct {
		layout   ringbuf.Layout
		receiver func(*nixlshmreceiver.Config)
		rings    rings.Config
	}
	histograms := func(of tally.HistogramConfig) func(*nixlshmreceiver.Config) {
		return func(cfg *nixlshmreceiver.Config) {
			cfg.Histograms = tally.Config{Duration: of, Size: of, Throughput: of}
		}
	}
	bounds := []float64{1e-3, 4}
	tests := map[string]test{
		"bounds": {
			ringbuf.V4, histograms(tally.HistogramConfig{Kind: tally.Explicit, Bounds: bounds}),
			rings.Config{DurationBounds: bounds, SizeBounds: bounds, ThroughputBounds: bounds},
		},
	}
	for _, layout := range ringbuf.Layouts() {
		tests[layout.String()] = test{layout, withEvents, rings.Config{}}
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			ops := stream(8, 500)
			if c.layout >= ringbuf.V4 {
				ops = append(ops, dropped(7))
			}
			if c.layout.Named() {
				ops = append(ops, ownEvents()...)
			}
			collector := throughReceiver(c.receiver)(t, ringOf(t, c.layout, ops))
			bridge := throughRings(c.rings)(t, ringOf(t, c.layout, ops))
			equal(t, normalize(t, collector()), normalize(t, bridge()))
		})
	}
}

// ringOf returns a directory with an agent's ring that holds the events of all
// operations.
func ringOf(t *testing.T, layout ringbuf.Layout, ops []operation) string {
	t.Helper()
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, agentName), layout, capacity)
	must.OK(t, err)
	for _, op := range ops {
		push(t, w, op.events...)
	}
	must.OK(t, w.Close())
	return dir
}

func newRing(t *testing.T, path string, slots int) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, ringbuf.V4, slots)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func push(t *testing.T, w *ringbuf.Writer, events ...ringbuf.Event) {
	t.Helper()
	if n, err := w.PushBatch(events); n < len(events) {
		t.Fatalf("only %d events fit: %v", n, err)
	}
}

// awaitDrain waits until all events of a ring are read.
func awaitDrain(t *testing.T, w *ringbuf.Writer) {
	t.Helper()
	must.EventuallyTrue(t, "empty ring", func() bool {
		n, err := w.Len()
		must.OK(t, err)
		return n == 0
	})
}
