// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// agentWorld is an Agent and its backend.
type agentWorld struct {
	*agent.Agent
	*backend
}

func newAgent(t *testing.T, opts ...agent.Option) *agentWorld {
	t.Helper()
	b := newBackend()
	return &agentWorld{b.agent(t, opts...), b}
}

const us = time.Microsecond

var start = metrictest.Start

func collect(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	return metrictest.Collect(t, reader, semconv.ScopeName)
}

// Each call updates the counters, gauges and histograms that package semconv lists
// for its events.
func TestEachCallUpdatesItsMetrics(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*agentWorld)
		want map[string]float64
	}{
		{"nothing", func(*agentWorld) {}, nil},
		{"transmit", func(w *agentWorld) { w.Transfer(ctx, agent.Transmit, 4096, 15*us, 120*us) }, map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}":                                4096,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":                          1,
			"nixl.transfer.size{nixl.transfer.direction=transmit}":                              1,
			"nixl.transfer.throughput{nixl.transfer.direction=transmit}":                        1,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":                         4096,
			"nixl.transfer.duration{}":                                                          1,
			"nixl.transfer.post.duration{}":                                                     1,
			"nixl.transfer.last.duration{}":                                                     120e-6,
			"nixl.transfer.last.post_duration{}":                                                15e-6,
			"nixl.events{nixl.event.category=performance,nixl.event.name=agent_xfer_post_time}": 1,
			"nixl.events{nixl.event.category=performance,nixl.event.name=agent_xfer_time}":      1,
			"nixl.events{nixl.event.category=transfer,nixl.event.name=agent_tx_bytes}":          1,
			"nixl.events{nixl.event.category=transfer,nixl.event.name=agent_tx_requests_num}":   1,
		}},
		{"receive twice, the last without bytes and duration", func(w *agentWorld) {
			w.Transfer(ctx, agent.Receive, 1<<20, 3*us, 10*us)
			w.Transfer(ctx, agent.Receive, -1, -us, 999*time.Nanosecond)
		}, map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=receive}":                                 1 << 20,
			"nixl.transfer.requests{nixl.transfer.direction=receive}":                           2,
			"nixl.transfer.size{nixl.transfer.direction=receive}":                               2,
			"nixl.transfer.throughput{nixl.transfer.direction=receive}":                         2,
			"nixl.transfer.duration{}":                                                          2,
			"nixl.transfer.post.duration{}":                                                     2,
			"nixl.events{nixl.event.category=performance,nixl.event.name=agent_xfer_post_time}": 2,
			"nixl.events{nixl.event.category=performance,nixl.event.name=agent_xfer_time}":      2,
			"nixl.events{nixl.event.category=transfer,nixl.event.name=agent_rx_bytes}":          2,
			"nixl.events{nixl.event.category=transfer,nixl.event.name=agent_rx_requests_num}":   2,
		}},
		{"memory", func(w *agentWorld) {
			w.MemoryRegistered(ctx, 300)
			w.MemoryRegistered(ctx, 200)
			w.MemoryDeregistered(ctx, 300)
		}, map[string]float64{
			"nixl.memory.registered{}":                                                          500,
			"nixl.memory.deregistered{}":                                                        300,
			"nixl.memory.usage{}":                                                               200,
			"nixl.memory.last.size{nixl.memory.operation=register}":                             200,
			"nixl.memory.last.size{nixl.memory.operation=deregister}":                           300,
			"nixl.events{nixl.event.category=memory,nixl.event.name=agent_memory_registered}":   2,
			"nixl.events{nixl.event.category=memory,nixl.event.name=agent_memory_deregistered}": 1,
		}},
		{"errors", func(w *agentWorld) {
			w.Error(ctx, agent.StatusRemoteDisconnect)
			w.Error(ctx, agent.StatusRemoteDisconnect)
			w.Error(ctx, agent.Status(200))
		}, map[string]float64{
			"nixl.errors{error.type=remote_disconnect}":                                          2,
			"nixl.errors{error.type=unknown}":                                                    1,
			"nixl.events{nixl.event.category=error,nixl.event.name=agent_err_remote_disconnect}": 2,
			"nixl.events{nixl.event.category=error,nixl.event.name=agent_err_unknown}":           1,
		}},
		{"custom events", func(w *agentWorld) {
			w.Event(ctx, agent.EventBackend, "ucx_am_messages", 7)
			w.Event(ctx, agent.EventBackend, "ucx_am_messages", 5)
			w.Event(ctx, agent.EventCategory(99), "odd", 1)
			w.Event(ctx, agent.EventSystem, strings.Repeat("n", 40), 1)
			w.Event(ctx, agent.EventConnection, "bad\xff\x00rest", 1)
		}, map[string]float64{
			"nixl.events{nixl.event.category=backend,nixl.event.name=ucx_am_messages}":                          2,
			"nixl.event.value{nixl.event.category=backend,nixl.event.name=ucx_am_messages}":                     12,
			"nixl.event.last_value{nixl.event.category=backend,nixl.event.name=ucx_am_messages}":                5,
			"nixl.events{nixl.event.category=custom,nixl.event.name=odd}":                                       1,
			"nixl.event.value{nixl.event.category=custom,nixl.event.name=odd}":                                  1,
			"nixl.event.last_value{nixl.event.category=custom,nixl.event.name=odd}":                             1,
			"nixl.events{nixl.event.category=system,nixl.event.name=nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn}":           1,
			"nixl.event.value{nixl.event.category=system,nixl.event.name=nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn}":      1,
			"nixl.event.last_value{nixl.event.category=system,nixl.event.name=nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn}": 1,
			"nixl.events{nixl.event.category=connection,nixl.event.name=bad\uFFFD}":                             1,
			"nixl.event.value{nixl.event.category=connection,nixl.event.name=bad\uFFFD}":                        1,
			"nixl.event.last_value{nixl.event.category=connection,nixl.event.name=bad\uFFFD}":                   1,
		}},
		{"drops", func(w *agentWorld) { w.EventsDropped(ctx, 48_380) }, map[string]float64{
			"nixl.telemetry.events.dropped{}": 48_380,
			"nixl.events{nixl.event.category=telemetry,nixl.event.name=agent_telemetry_events_dropped}": 1,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newAgent(t)
			c.do(w)
			want := c.want
			if want == nil {
				want = map[string]float64{}
			}
			if d := cmp.Diff(want, w.values(t)); d != "" {
				t.Errorf("values (-want +got):\n%s", d)
			}
		})
	}
}

// Only errors and drops are reported before the first event.
func TestErrorsAndDropsStartAtZero(t *testing.T) {
	got := metrictest.Values(collect(t, newAgent(t).reader))
	want := map[string]float64{"nixl.telemetry.events.dropped{}": 0}
	for s := agent.StatusNotPosted; s <= agent.StatusNoTelemetry; s++ {
		want[fmt.Sprintf("nixl.errors{error.type=%v}", s)] = 0
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

// Upper bounds are inclusive.
func TestBucketBoundsAreInclusive(t *testing.T) {
	w := newAgent(t)
	for _, bound := range semconv.DurationBounds() {
		w.Transfer(ctx, agent.Transmit, 1<<10, 0, time.Duration(bound*1e9+0.5))
	}
	h := metrictest.Data[metricdata.Histogram[float64]](t, collect(t, w.reader), semconv.TransferDuration.Name).DataPoints[0]
	if d := cmp.Diff(semconv.DurationBounds(), h.Bounds); d != "" {
		t.Errorf("bounds (-want +got):\n%s", d)
	}
	for i, n := range h.BucketCounts {
		want := uint64(1)
		if i == len(h.Bounds) {
			want = 0
		}
		if n != want {
			t.Errorf("bucket %d has %d, want %d", i, n, want)
		}
	}
}

// At 1 GB/s, the sum reaches 2^63 in less than ten billion transfers.
func TestSumOfThroughputCanExceedAnInt64(t *testing.T) {
	w := newAgent(t)
	const n, bytes = 1000, 1<<34 + 1
	for range n {
		w.Transfer(ctx, agent.Transmit, bytes, 0, 0) // 1 µs at least
	}
	h := metrictest.Data[metricdata.Histogram[float64]](t, collect(t, w.reader), semconv.TransferThroughput.Name).DataPoints[0]
	if most, _ := h.Max.Value(); h.Count != n || h.Sum != float64(n)*float64(bytes)*1e6 || most != bytes*1e6 {
		t.Errorf("%d values, sum %v, max %v", h.Count, h.Sum, most)
	}
}

// Beyond the limit on names, all events and values count in one series.
func TestEventNamesAreBounded(t *testing.T) {
	w := newAgent(t)
	for i := range 210 {
		w.Event(ctx, agent.EventCustom, fmt.Sprint("name ", i), 2)
	}
	got := w.values(t)
	if n := got["nixl.events{otel.metric.overflow=true}"]; n != 10 {
		t.Errorf("%v events beyond the limit, want 10", n)
	}
	if n := got["nixl.event.value{otel.metric.overflow=true}"]; n != 20 {
		t.Errorf("a value of %v beyond the limit, want 20", n)
	}
	if len(got) != 3*200+2 {
		t.Errorf("%d series, want 602", len(got))
	}
}

// Sums stop at the largest value of OTLP; they never decrease.
func TestSumsSaturate(t *testing.T) {
	backend := newBackend()
	const name = "nixl.event.value{nixl.event.category=custom,nixl.event.name=huge}"
	sums := []string{
		"nixl.transfer.io{nixl.transfer.direction=receive}",
		"nixl.memory.registered{}", "nixl.memory.deregistered{}", "nixl.telemetry.events.dropped{}",
	}
	for _, life := range []string{"first", "second"} {
		a, other := backend.agent(t), backend.agent(t)
		for range 3 {
			a.Event(ctx, agent.EventCustom, "huge", 1<<63)
			for _, a := range []*agent.Agent{a, other} {
				a.Transfer(ctx, agent.Receive, math.MaxInt64, 0, 0)
				a.Transfer(ctx, agent.Receive, 1, 0, 0)
				a.MemoryRegistered(ctx, 1<<62)
				a.MemoryDeregistered(ctx, math.MaxInt64)
				a.EventsDropped(ctx, math.MaxUint64)
			}
		}
		got := make(map[string]int64)
		for _, m := range collect(t, backend.reader) {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range sum.DataPoints {
					got[m.Name+"{"+p.Attributes.Encoded(attribute.DefaultEncoder())+"}"] = p.Value
				}
			}
		}
		for _, key := range append(sums, name) {
			if got[key] != math.MaxInt64 {
				t.Errorf("%s life: %s is %d, want 2^63-1", life, key, got[key])
			}
		}
		closeAgent(t, a)
		closeAgent(t, other)
	}
}

func TestDataPointsCarryTheAgentName(t *testing.T) {
	b := newBackend()
	for i, name := range []string{"one", "two", "bad\xff"} {
		b.named(t, name).MemoryRegistered(ctx, int64(i+1))
	}
	got := b.values(t)
	for i, name := range []string{"one", "two", "bad\uFFFD"} {
		if v := got["nixl.memory.registered{nixl.agent.name="+name+"}"]; v != float64(i+1) {
			t.Errorf("%s registered %v, want %d", name, v, i+1)
		}
	}
}

func TestNilAgentDoesNothing(t *testing.T) {
	var a *agent.Agent
	a.Transfer(ctx, agent.Transmit, 1, us, us)
	a.MemoryRegistered(ctx, 1)
	a.MemoryDeregistered(ctx, 1)
	a.Error(ctx, agent.StatusBackend)
	a.Event(ctx, agent.EventCustom, "x", 1)
	a.EventsDropped(ctx, 1)
	if got := a.RingTelemetry(); got != (agent.RingTelemetry{}) {
		t.Errorf("RingTelemetry: %+v", got)
	}
	if with := a.With(attribute.NewSet(attribute.Bool("x", true))); with != nil {
		t.Errorf("With: %v", with)
	}
	if err := a.Flush(); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestConstantsHaveNames(t *testing.T) {
	if got := fmt.Sprint(agent.Receive, agent.Direction(7), agent.StatusCanceled, agent.Status(12),
		agent.EventSystem, agent.EventCategory(4)); got != "receive Direction(7) canceled Status(12) system EventCategory(4)" {
		t.Error(got)
	}
}
