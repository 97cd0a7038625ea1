// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"maps"
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
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Counters and histograms stay, whether the agent or its provider is closed first, and another agent
// of its name continues them. The other series end with the agent.
func TestSeriesAfterClose(t *testing.T) {
	b, other := newBackend(), newBackend()
	a, open := b.agent(t), other.agent(t)
	do(a)
	do(open)
	must.OK(t, a.Close())
	want := other.all(t)
	must.OK(t, other.provider.Shutdown(t.Context()))
	must.OK(t, open.Close())
	maps.DeleteFunc(want, func(key string, _ float64) bool {
		return strings.Contains(key, ".last.") || strings.HasPrefix(key, semconv.AgentUp.Name) || strings.HasPrefix(key, semconv.MemoryUsage.Name)
	})
	b.expect(t, want)

	again, created, twice := b.agent(t), maps.Clone(want), make(map[string]float64)
	created["nixl.agent.up{}"] = 1
	b.expect(t, created)
	for range 2 { // the second time, the agent is closed
		do(again)
		must.OK(t, again.Close())
		for key, v := range want {
			twice[key] = 2 * v
		}
		b.expect(t, twice)
	}
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
