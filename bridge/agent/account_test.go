// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// backend is a reader with the Producer that agents report to.
type backend struct {
	clock    *metrictest.Clock
	producer *agent.Producer
	reader   *sdkmetric.ManualReader
}

func newBackend() *backend {
	b := &backend{clock: metrictest.NewClock(), producer: agent.NewProducer()}
	b.reader = sdkmetric.NewManualReader(sdkmetric.WithProducer(b.producer))
	sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))
	return b
}

// agent returns an agent whose data points don't carry its name.
func (b *backend) agent(t *testing.T, opts ...agent.Option) *agent.Agent {
	t.Helper()
	return b.named(t, "a", append(opts, agent.WithNameInResource())...)
}

func (b *backend) named(t *testing.T, name string, opts ...agent.Option) *agent.Agent {
	t.Helper()
	a, err := agent.New(name, append(opts, agent.WithProducer(b.producer), agent.WithClock(b.clock.Now))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// values collects the current values and returns those that aren't 0.
func (b *backend) values(t *testing.T) map[string]float64 {
	t.Helper()
	all := metrictest.Values(collect(t, b.reader))
	for key, v := range all {
		if v == 0 {
			delete(all, key)
		}
	}
	return all
}

// expect compares all values except those of nixl.events.
func (b *backend) expect(t *testing.T, want map[string]float64) {
	t.Helper()
	got := b.values(t)
	for key := range got {
		if strings.HasPrefix(key, "nixl.events{") {
			delete(got, key)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func closeAgent(t *testing.T, a *agent.Agent) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// If an agent is created again within 5 minutes, its counters continue, but its
// gauges and its memory usage restart.
func TestRecreatedAgentContinuesItsCounters(t *testing.T) {
	b := newBackend()
	record := func(a *agent.Agent, bytes int64) {
		a.Transfer(ctx, agent.Transmit, bytes, us, us)
		a.MemoryRegistered(ctx, bytes)
		a.Error(ctx, agent.StatusBackend)
		a.Event(ctx, agent.EventCustom, "x", uint64(bytes))
		a.EventsDropped(ctx, 3)
	}
	state := func(agents, bytes, usage float64) map[string]float64 {
		return map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}":             bytes,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":       agents,
			"nixl.transfer.size{nixl.transfer.direction=transmit}":           agents,
			"nixl.transfer.throughput{nixl.transfer.direction=transmit}":     agents,
			"nixl.transfer.duration{}":                                       agents,
			"nixl.transfer.post.duration{}":                                  agents,
			"nixl.memory.registered{}":                                       bytes,
			"nixl.errors{error.type=backend}":                                agents,
			"nixl.event.value{nixl.event.category=custom,nixl.event.name=x}": bytes,
			"nixl.telemetry.events.dropped{}":                                3 * agents,

			"nixl.memory.usage{}": usage,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":           usage,
			"nixl.transfer.last.duration{}":                                       1e-6,
			"nixl.transfer.last.post_duration{}":                                  1e-6,
			"nixl.memory.last.size{nixl.memory.operation=register}":               usage,
			"nixl.event.last_value{nixl.event.category=custom,nixl.event.name=x}": usage,
		}
	}
	one := b.agent(t)
	record(one, 1000)
	b.expect(t, state(1, 1000, 1000))
	closeAgent(t, one)
	record(one, 1<<20) // too late
	b.clock.Advance(5*time.Minute - 1)
	b.expect(t, state(1, 1000, 1000))

	two := b.agent(t)
	ended := state(1, 1000, 0)
	for key := range ended {
		if key == "nixl.memory.usage{}" || strings.Contains(key, "last") {
			delete(ended, key)
		}
	}
	b.expect(t, ended)
	record(two, 100)
	b.expect(t, state(2, 1100, 100))
}

// A closed agent is reported for 5 minutes and at least once.
func TestClosedAgentExpires(t *testing.T) {
	b := newBackend()
	a := b.agent(t)
	a.MemoryRegistered(ctx, 5)
	closeAgent(t, a)
	b.clock.Advance(time.Hour)
	last := map[string]float64{
		"nixl.memory.registered{}": 5, "nixl.memory.usage{}": 5, "nixl.memory.last.size{nixl.memory.operation=register}": 5,
	}
	b.expect(t, last)
	b.expect(t, map[string]float64{})

	a = b.agent(t)
	a.MemoryRegistered(ctx, 5)
	b.expect(t, last)
}

// Closing one of two agents with the same name doesn't change the sums.
func TestAgentsWithTheSameNameAddUp(t *testing.T) {
	b := newBackend()
	one, two := b.agent(t), b.agent(t)
	one.MemoryRegistered(ctx, 5)
	two.MemoryRegistered(ctx, 7)
	two.MemoryDeregistered(ctx, 1)
	const size = "nixl.memory.last.size{nixl.memory.operation="
	sums := map[string]float64{"nixl.memory.registered{}": 12, "nixl.memory.deregistered{}": 1, "nixl.memory.usage{}": 11, size + "register}": 7, size + "deregister}": 1}
	b.expect(t, sums)
	closeAgent(t, two)
	sums[size+"register}"] = 5 // of the open agent
	b.expect(t, sums)
	b.clock.Advance(5 * time.Minute)
	sums["nixl.memory.usage{}"] = 5
	delete(sums, size+"deregister}")
	b.expect(t, sums)
}

// The limit on event names applies to all agents with the same name together,
// including consecutive ones, so that an event name is always counted in the same
// series.
func TestEventNamesAreBoundedAcrossRestarts(t *testing.T) {
	b := newBackend()
	for range 3 {
		for _, names := range []string{"first", "second"} {
			a := b.agent(t)
			for i := range 150 {
				a.Event(ctx, agent.EventCustom, fmt.Sprint(names, i), 1)
			}
			b.values(t)
			closeAgent(t, a)
			b.values(t)
		}
	}
	if n := b.values(t)["nixl.events{otel.metric.overflow=true}"]; n != 300 {
		t.Errorf("%v events beyond the limit, want 3 times 100", n)
	}
}

// Closed agents with different names don't accumulate, even if no reader collects.
func TestClosedAgentsAreBounded(t *testing.T) {
	b := newBackend()
	for i := range 2010 {
		a := b.named(t, fmt.Sprint("agent ", i))
		a.MemoryRegistered(ctx, 1)
		closeAgent(t, a)
		b.clock.Advance(1)
	}
	got := b.values(t)
	if n := len(got) / 4; n > 2000 {
		t.Errorf("%d closed agents are reported, want 2000 at most", n)
	}
	if got["nixl.memory.registered{nixl.agent.name=agent 2009}"] != 1 {
		t.Error("the newest agent isn't reported")
	}
}

// While agents are created and closed during collections, no sum decreases, and no
// event is lost or counted twice.
func TestAgentsCloseWhileReadersCollect(t *testing.T) {
	b := newBackend()
	const workers, lives = 4, 100
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for range lives {
				a := b.agent(t)
				a.MemoryRegistered(ctx, 1)
				a.Event(ctx, agent.EventCustom, "x", 1)
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	keys := []string{"nixl.memory.registered{}", "nixl.event.value{nixl.event.category=custom,nixl.event.name=x}"}
	seen := make(map[string]float64)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		got := b.values(t)
		for _, key := range keys {
			if got[key] < seen[key] {
				t.Fatalf("%s decreased from %v to %v", key, seen[key], got[key])
			}
			seen[key] = got[key]
		}
	}
	for _, key := range keys {
		if seen[key] != workers*lives {
			t.Errorf("%s is %v, want %d", key, seen[key], workers*lives)
		}
	}
}

// Usage isn't reported if a program deregisters memory that it never registered.
func TestMemoryUsageIsNeverNegative(t *testing.T) {
	w := newAgent(t)
	w.MemoryDeregistered(ctx, 10)
	const usage = "nixl.memory.usage{}"
	if v, ok := metrictest.Values(collect(t, w.reader))[usage]; ok {
		t.Errorf("usage is %v, want none", v)
	}
	w.MemoryRegistered(ctx, 15)
	if v := metrictest.Values(collect(t, w.reader))[usage]; v != 5 {
		t.Errorf("usage is %v, want 5", v)
	}
}
