// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Each call updates the counters, gauges and histograms that package semconv lists
// for its events.
func TestEachCallUpdatesItsMetrics(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*agent.Agent)
		want map[string]float64
	}{
		{"none", func(*agent.Agent) {}, nil},
		{"transmit", func(a *agent.Agent) { a.Transfer(ctx, agent.Transmit, 4096, 15*us, 120*us) }, map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}":         4096,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":   1,
			"nixl.transfer.size{nixl.transfer.direction=transmit}":       1,
			"nixl.transfer.throughput{nixl.transfer.direction=transmit}": 1,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":  4096,
			"nixl.transfer.duration{}":                                   1,
			"nixl.transfer.post.duration{}":                              1,
			"nixl.transfer.last.duration{}":                              120e-6,
			"nixl.transfer.last.post_duration{}":                         15e-6,
		}},
		{"an unknown direction, and negative numbers", func(a *agent.Agent) { a.Transfer(ctx, 7, -1, -us, -us) }, map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}":         0,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":   1,
			"nixl.transfer.size{nixl.transfer.direction=transmit}":       1,
			"nixl.transfer.throughput{nixl.transfer.direction=transmit}": 1,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":  0,
			"nixl.transfer.duration{}":                                   1,
			"nixl.transfer.post.duration{}":                              1,
			"nixl.transfer.last.duration{}":                              0,
			"nixl.transfer.last.post_duration{}":                         0,
		}},
		{"receive twice, the last without bytes and duration", func(a *agent.Agent) {
			a.Transfer(ctx, agent.Receive, 1<<20, 3*us, 10*us)
			a.Transfer(ctx, agent.Receive, 0, 0, 999*time.Nanosecond)
		}, map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=receive}":         1 << 20,
			"nixl.transfer.requests{nixl.transfer.direction=receive}":   2,
			"nixl.transfer.size{nixl.transfer.direction=receive}":       2,
			"nixl.transfer.throughput{nixl.transfer.direction=receive}": 2,
			"nixl.transfer.last.size{nixl.transfer.direction=receive}":  0,
			"nixl.transfer.duration{}":                                  2,
			"nixl.transfer.post.duration{}":                             2,
			"nixl.transfer.last.duration{}":                             0,
			"nixl.transfer.last.post_duration{}":                        0,
		}},
		{"memory", func(a *agent.Agent) {
			a.MemoryRegistered(ctx, 300)
			a.MemoryRegistered(ctx, 200)
			a.MemoryDeregistered(ctx, 500)
			a.MemoryDeregistered(ctx, -1)
		}, map[string]float64{
			"nixl.memory.registered{}":                                500,
			"nixl.memory.deregistered{}":                              500,
			"nixl.memory.usage{}":                                     0,
			"nixl.memory.last.size{nixl.memory.operation=register}":   200,
			"nixl.memory.last.size{nixl.memory.operation=deregister}": 0,
		}},
		{"more memory deregistered than registered: registrations were missed", func(a *agent.Agent) {
			a.MemoryDeregistered(ctx, 5)
			a.MemoryRegistered(ctx, 50)
		}, map[string]float64{
			"nixl.memory.registered{}": 50, "nixl.memory.deregistered{}": 5,
			"nixl.memory.last.size{nixl.memory.operation=register}": 50, "nixl.memory.last.size{nixl.memory.operation=deregister}": 5,
		}},
		{"errors", func(a *agent.Agent) {
			a.Error(ctx, semconv.ErrorNotPosted)
			a.Error(ctx, semconv.ErrorRemoteDisconnect)
			a.Error(ctx, semconv.ErrorRemoteDisconnect)
			a.Error(ctx, "another")
			a.Error(ctx, "agent_err_backend")
			a.Error(ctx, "NIXL_ERR_BACKEND")
		}, map[string]float64{
			"nixl.errors{error.type=not_posted}":        1,
			"nixl.errors{error.type=backend}":           2,
			"nixl.errors{error.type=remote_disconnect}": 2,
			"nixl.errors{error.type=unknown}":           1,
		}},
		{"events of the program's own", func(a *agent.Agent) {
			a.Event(ctx, ringbuf.CategoryConnection, "peers", 2)
			a.Event(ctx, ringbuf.CategoryBackend, "ucx_retries", 3)
			a.Event(ctx, ringbuf.CategoryBackend, "ucx_retries", 4)
			a.Event(ctx, ringbuf.CategorySystem, strings.Repeat("x", 40), 1)
			a.Event(ctx, ringbuf.CategoryMemory, "mine\xff", 5)
		}, map[string]float64{
			"nixl.event.value{nixl.event.category=connection,nixl.event.name=peers}":                            2,
			"nixl.event.last_value{nixl.event.category=connection,nixl.event.name=peers}":                       2,
			"nixl.event.value{nixl.event.category=backend,nixl.event.name=ucx_retries}":                         7,
			"nixl.event.last_value{nixl.event.category=backend,nixl.event.name=ucx_retries}":                    4,
			"nixl.event.value{nixl.event.category=system,nixl.event.name=" + strings.Repeat("x", 31) + "}":      1,
			"nixl.event.last_value{nixl.event.category=system,nixl.event.name=" + strings.Repeat("x", 31) + "}": 1,
			"nixl.event.value{nixl.event.category=custom,nixl.event.name=mine\uFFFD}":                           5,
			"nixl.event.last_value{nixl.event.category=custom,nixl.event.name=mine\uFFFD}":                      5,
		}},
		{"events with ever new names", func(a *agent.Agent) {
			for i := range 1000 {
				a.Event(ctx, ringbuf.CategoryCustom, fmt.Sprint("event ", i), 1)
			}
		}, manyEvents()},
		{"drops", func(a *agent.Agent) { a.EventsDropped(ctx, 48_380) }, map[string]float64{
			"nixl.telemetry.events.dropped{}": 48_380,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBackend()
			c.do(b.agent(t))
			b.expect(t, with(c.want))
		})
	}
}

// manyEvents returns the values of 1,000 events: 200 with series and 800 in the overflow.
func manyEvents() map[string]float64 {
	all := map[string]float64{"nixl.event.value{otel.metric.overflow=true}": 800}
	for i := range 200 {
		all[fmt.Sprintf("nixl.event.value{nixl.event.category=custom,nixl.event.name=event %d}", i)] = 1
		all[fmt.Sprintf("nixl.event.last_value{nixl.event.category=custom,nixl.event.name=event %d}", i)] = 1
	}
	return all
}

func TestDataPointsCarryTheAgentName(t *testing.T) {
	b := newBackend()
	for i, name := range []string{"one", "two", "bad\xff"} {
		newAgent(t, name, agent.WithMeterProvider(b.provider)).MemoryRegistered(ctx, int64(i+1))
	}
	got := b.all(t)
	for i, name := range []string{"one", "two", "bad\uFFFD"} {
		if v := got["nixl.memory.registered{nixl.agent.name="+name+"}"]; v != float64(i+1) {
			t.Errorf("%s registered %v, want %d", name, v, i+1)
		}
	}
}

func TestNilAgentDoesNothing(t *testing.T) {
	var a *agent.Agent
	do(a)
	if got := a.RingTelemetry(); got != (agent.RingTelemetry{}) {
		t.Errorf("RingTelemetry: %+v", got)
	}
	must.OK(t, errors.Join(a.Flush(), a.Close()))
}

func TestInvalidFileNameIsRejected(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "../a", "a\x00b"} {
		if _, err := agent.New(name, agent.WithMeterProvider(newBackend().provider)); err == nil || !strings.Contains(err.Error(), "must be a file name") {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	a := newBackend().agent(t)
	if n := testing.AllocsPerRun(100, func() { do(a) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
