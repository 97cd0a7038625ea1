// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// The series stay, whether the agent or its provider is closed first, and another agent of its name continues them.
func TestSeriesAfterClose(t *testing.T) {
	b := newBackend()
	a, second := b.agent(t), b.agent(t)
	do(a)
	want := b.all(t)
	for _, c := range []struct {
		agent *agent.Agent
		up    float64
	}{{second, 1}, {a, 0}} {
		must.OK(t, c.agent.Close())
		want["nixl.agent.up{}"] = c.up
		b.expect(t, want)
	}

	again := b.agent(t)
	want["nixl.agent.up{}"] = 1
	delete(want, "nixl.memory.usage{}") // until it registers memory
	b.expect(t, want)
	do(again)
	must.OK(t, again.Close())
	for key, v := range want {
		if !strings.Contains(key, ".last") {
			want[key] = 2 * v
		}
	}
	want["nixl.agent.up{}"], want["nixl.memory.usage{}"] = 0, 200
	b.expect(t, want)
}

// While an agent is closed, events aren't counted any more that can't be written.
func TestEventsDuringTheLastFlushAreNotRecorded(t *testing.T) {
	b, written := newBackend(), 0
	var a *agent.Agent
	a = b.agent(t, agent.WithRunInterval(time.Hour), agent.WithSinks(sink.Func(func(events []sink.Event) error {
		written += len(events)
		a.MemoryRegistered(ctx, 1)
		return nil
	})))
	a.MemoryRegistered(ctx, 1)
	must.OK(t, a.Close())
	if n := b.all(t)["nixl.memory.registered{}"]; n != 1 || written != 1 {
		t.Errorf("%v events were counted and %d written, want 1", n, written)
	}
	if d := cmp.Diff(agent.RingTelemetry{}, a.RingTelemetry()); d != "" {
		t.Errorf("RingTelemetry (-want +got):\n%s", d)
	}
}

// A program may create ever new agents.
func TestClosedAgentIsReleased(t *testing.T) {
	b := newBackend()
	a, err := agent.New("a", agent.WithMeterProvider(b.provider))
	must.OK(t, err)
	must.OK(t, a.Close())
	released := weak.Make(a)
	runtime.GC()
	if released.Value() != nil {
		t.Error("the MeterProvider keeps a closed agent in memory")
	}
	runtime.KeepAlive(b)
}

// Each event that the SDK counts is written or counted as dropped, while agents are created, flushed and
// closed during collections.
func TestConcurrentEventsAreWrittenOrDropped(t *testing.T) {
	b := newBackend()
	var written atomic.Int64
	count := sink.Func(func(events []sink.Event) error {
		for _, e := range events {
			if e.Category != ringbuf.CategorySystem { // which reports drops
				written.Add(1)
			}
		}
		return nil
	})
	stop := make(chan struct{})
	var collectors sync.WaitGroup
	for range 2 {
		collectors.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = b.reader.Collect(ctx, new(metricdata.ResourceMetrics))
				}
			}
		})
	}
	var staging uint64
	for range 100 {
		a := b.agent(t, agent.WithSinks(count), agent.WithRunInterval(time.Hour), agent.WithCapacity(2048))
		var recorders sync.WaitGroup
		var closed atomic.Bool
		for g := range 4 {
			recorders.Go(func() {
				for !closed.Load() {
					a.Transfer(ctx, agent.Direction(g%2), 1, us, us)
					a.MemoryRegistered(ctx, 1)
					a.Error(ctx, semconv.ErrorBackend)
				}
			})
		}
		must.OK(t, a.Flush())
		must.OK(t, a.Close())
		closed.Store(true)
		recorders.Wait()
		staging += a.RingTelemetry().DroppedStaging
	}
	close(stop)
	collectors.Wait()
	got := b.all(t)
	counted := 4*got["nixl.transfer.duration{}"] + got["nixl.memory.registered{}"] + got["nixl.errors{error.type=backend}"]
	dropped := got["nixl.telemetry.events.dropped{}"]
	if d := cmp.Diff([]float64{counted, dropped}, []float64{float64(written.Load()) + dropped, float64(staging)}); d != "" {
		t.Errorf("counted and dropped events (-metrics +written and dropped):\n%s", d)
	}
}
