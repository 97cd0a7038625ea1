// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ringOnly is the prefix of the metrics that only a ring has.
const ringOnly = "nixl.telemetry.ring."

// The test exports one stream of operations through a ring and the receiver, and
// through the bridge and the SDK's exporter. Only the resource and the ring's
// health may differ.
func TestBridgeExportsTheSameMetricsAsTheReceiver(t *testing.T) {
	for name, ops := range map[string][]operation{
		"no operation": nil,
		"one transfer": {transfer(agent.Transmit, 4096, 15_000, 120_000)},
		"only memory":  {registered(10), deregistered(3)},
		"a busy agent": append(stream(1, 2000), dropped(48_380), dropped(1)),
	} {
		t.Run(name, func(t *testing.T) {
			ring := normalize(t, throughReceiver(t, ringOf(t, ringbuf.V4, events(ops)...)), ringOnly)
			equal(t, ring, normalize(t, throughBridge(t, ops)))
		})
	}
}

// The receiver and package rings convert the same totals to metrics with separate
// code. The rings of this test produce every metric of the catalog.
func TestRingsExportTheSameMetricsAsTheReceiver(t *testing.T) {
	bounds := []float64{1e-3, 4}
	explicit := tally.HistogramConfig{Kind: tally.Explicit, Bounds: bounds}
	seen := make(map[string]bool)
	for name, c := range map[string]struct {
		layout   ringbuf.Layout
		events   []ringbuf.Event
		receiver tally.Config
		rings    rings.Config
	}{
		"types": {layout: ringbuf.V4, events: append(events(stream(8, 500)),
			ringbuf.NewEvent(ringbuf.TypeEventsDropped, 7), ringbuf.NewEvent(ringbuf.TypeEventsDropped, math.MaxUint64),
			ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, math.MaxUint64), ringbuf.NewEvent(ringbuf.Type(99), 1),
			ringbuf.NewEvent(ringbuf.TypeXferTime, 1), ringbuf.NewEvent(ringbuf.TypeTxBytes, 1), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1), // torn
		)},
		"usage of memory": {layout: ringbuf.V4, events: events([]operation{registered(10), deregistered(3)})},
		"names":           {layout: ringbuf.V1, events: names()},
		"bounds": {
			ringbuf.V4, events(stream(9, 500)),
			tally.Config{Duration: explicit, Size: explicit, Throughput: explicit},
			rings.Config{DurationBounds: bounds, SizeBounds: bounds, ThroughputBounds: bounds},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := normalize(t, throughReceiver(t, ringOf(t, c.layout, c.events...), func(cfg *nixlshmreceiver.Config) {
				cfg.Metrics.NixlEvents.Enabled = true
				cfg.Histograms = c.receiver
			}))
			equal(t, want, normalize(t, throughRings(t, ringOf(t, c.layout, c.events...), c.rings)))
			for metric := range want {
				seen[metric] = true
			}
		})
	}
	for _, m := range semconv.NIXL() {
		if !seen[m.Name] && m.Name != semconv.AgentUp.Name { // normalize omits it
			t.Errorf("%s was never exported", m.Name)
		}
	}
}

// names returns events with more names than the limit, both names with summed values and
// names that are only counted. It also has errors that the catalog doesn't know, an
// unknown category, and names that aren't UTF-8 or too long for a ring.
func names() []ringbuf.Event {
	list := []ringbuf.Event{
		ringbuf.NewNamedEvent(ringbuf.CategoryError, "NIXL_ERR_SOMETHING_NEW", 3),
		ringbuf.NewNamedEvent(ringbuf.CategoryError, "NIXL_ERR_BACKEND", 4),
		ringbuf.NewNamedEvent(ringbuf.Category(77), "agent_tx_bytes", 5),
		ringbuf.NewNamedEvent(ringbuf.CategorySystem, "huge", math.MaxUint64),
		ringbuf.NewNamedEvent(ringbuf.CategorySystem, "huge", math.MaxUint64),
		ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "not UTF-8 \xff", 1),
		ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "a name that is longer than a ring has room for", 1),
	}
	for i := range 230 {
		list = append(list, ringbuf.NewNamedEvent(ringbuf.CategoryTransfer, fmt.Sprint("counted ", i), 1),
			ringbuf.NewNamedEvent(ringbuf.CategoryConnection, fmt.Sprint("summed up ", i), uint64(i)))
	}
	return list
}

// events returns the events of all operations.
func events(ops []operation) (all []ringbuf.Event) {
	for _, op := range ops {
		all = append(all, op.events...)
	}
	return slices.Clip(all)
}

// throughRings returns the metrics that package rings exports for a directory.
func throughRings(t *testing.T, dir string, c rings.Config) pmetric.Metrics {
	t.Helper()
	b := otlpfile.NewSink(t)
	c.Events = true
	c.Directories, c.RunInterval, c.Logger = []string{dir}, 2*time.Millisecond, slog.New(slog.DiscardHandler)
	p, err := rings.Open(c)
	must.OK(t, err)
	provider := pipeline(t, b, sdkmetric.WithProducer(p))
	must.OK(t, provider.Shutdown(t.Context()))
	must.OK(t, p.Close())
	return only(t, b.Collections())
}
