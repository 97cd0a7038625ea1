package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// backend is a backend and the agents that report to it.
type backend struct{ *metrictest.Backend }

func eachTemporality(t *testing.T, f func(*testing.T, *backend)) {
	t.Helper()
	metrictest.EachTemporality(t, agent.ScopeName, func(t *testing.T, b *metrictest.Backend) { f(t, &backend{b}) })
}

func newBackend() *backend {
	return &backend{metrictest.NewBackend(metricdata.CumulativeTemporality, agent.ScopeName)}
}

// see collects and compares the sums that aren't 0, and the last values.
func (b *backend) see(t *testing.T, want map[string]float64) {
	t.Helper()
	b.Collect(t)
	got := make(map[string]float64)
	for key, n := range b.Sums {
		if n != 0 && !strings.HasPrefix(key, "nixl.events{") {
			got[key] = float64(n)
		}
	}
	for key, v := range b.Others {
		if strings.Contains(key, "last") {
			got[key] = v
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func (b *backend) agent(t *testing.T, name string, opts ...agent.Option) *agent.Agent {
	t.Helper()
	a, err := agent.New(name, append([]agent.Option{
		agent.WithMeterProvider(b.Provider), agent.WithNameInResource(),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func closeAgent(t *testing.T, a *agent.Agent) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// An agent that is closed and made anew counts on, as the SDK's own counters
// do; its gauges and its memory begin anew.
func TestAgentAgain(t *testing.T) {
	eachTemporality(t, func(t *testing.T, b *backend) {
		record := func(a *agent.Agent, bytes int64) {
			a.Transfer(agent.Transmit, bytes, us, us)
			a.MemoryRegistered(bytes)
			a.Error(agent.StatusBackend)
			a.Event(agent.EventCustom, "x", uint64(bytes))
			a.EventsDropped(3)
		}
		one := b.agent(t, "a")
		record(one, 1000)
		first := map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}":                  1000,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":            1,
			"nixl.memory.registered{}":                                            1000,
			"nixl.memory.usage{}":                                                 1000,
			"nixl.errors{error.type=backend}":                                     1,
			"nixl.event.value{nixl.event.category=custom,nixl.event.name=x}":      1000,
			"nixl.telemetry.events.dropped{}":                                     3,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":           1000,
			"nixl.transfer.last.duration{}":                                       1e-6,
			"nixl.transfer.last.post_duration{}":                                  1e-6,
			"nixl.memory.last.size{nixl.memory.operation=register}":               1000,
			"nixl.event.last_value{nixl.event.category=custom,nixl.event.name=x}": 1000,
		}
		b.see(t, first)
		closeAgent(t, one)
		record(one, 1<<20) // too late
		ended := make(map[string]float64)
		for key, v := range first {
			if key != "nixl.memory.usage{}" && !strings.Contains(key, "last") {
				ended[key] = v
			}
		}
		b.see(t, ended)
		two := b.agent(t, "a")
		b.see(t, ended)
		record(two, 100)
		b.see(t, map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}":                  1100,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":            2,
			"nixl.memory.registered{}":                                            1100,
			"nixl.memory.usage{}":                                                 100,
			"nixl.errors{error.type=backend}":                                     2,
			"nixl.event.value{nixl.event.category=custom,nixl.event.name=x}":      1100,
			"nixl.telemetry.events.dropped{}":                                     6,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":           100,
			"nixl.transfer.last.duration{}":                                       1e-6,
			"nixl.transfer.last.post_duration{}":                                  1e-6,
			"nixl.memory.last.size{nixl.memory.operation=register}":               100,
			"nixl.event.last_value{nixl.event.category=custom,nixl.event.name=x}": 100,
		})
	})
}

// Of two agents of one name, the one that is closed leaves the sum as it is.
func TestAgentsOfOneName(t *testing.T) {
	eachTemporality(t, func(t *testing.T, b *backend) {
		one, two := b.agent(t, "a"), b.agent(t, "a")
		one.MemoryRegistered(5)
		two.MemoryRegistered(7)
		two.MemoryDeregistered(1)
		const size = "nixl.memory.last.size{nixl.memory.operation="
		sums := map[string]float64{"nixl.memory.registered{}": 12, "nixl.memory.deregistered{}": 1, "nixl.memory.usage{}": 11, size + "register}": 7, size + "deregister}": 1}
		b.see(t, sums)
		closeAgent(t, two)
		sums["nixl.memory.usage{}"], sums[size+"register}"] = 5, 5
		delete(sums, size+"deregister}")
		b.see(t, sums)
		closeAgent(t, one)
		delete(sums, "nixl.memory.usage{}")
		delete(sums, size+"register}")
		b.see(t, sums)
	})
}

// The limit on names is that of all agents of a name, one after another too,
// so that none counts now under its own name and now past the limit.
func TestAgentAgainKeepsItsNames(t *testing.T) {
	eachTemporality(t, func(t *testing.T, b *backend) {
		for range 3 {
			for _, names := range []string{"first", "second"} {
				a := b.agent(t, "a")
				for i := range 150 {
					a.Event(agent.EventCustom, fmt.Sprint(names, i), 1)
				}
				b.Collect(t)
				closeAgent(t, a)
				b.Collect(t)
			}
		}
		if n := b.Sums["nixl.events{otel.metric.overflow=true}"]; n != 300 {
			t.Errorf("%d events past the limit, want 3 times 100", n)
		}
	})
}

// Agents that come and go under ever new names don't pile up, and of those
// that counted nothing nothing is kept.
func TestClosedAgentsAreBounded(t *testing.T) {
	b := newBackend()
	for i := range 250 {
		a := b.agent(t, "", agent.WithAttributes(attribute.Int("i", i)))
		a.MemoryRegistered(1)
		closeAgent(t, a)
		closeAgent(t, b.agent(t, "", agent.WithAttributes(attribute.Int("empty", i))))
	}
	registered := metrictest.Values([]metricdata.Metrics{metrictest.Find(t, collect(t, b.Reader), "nixl.memory.registered")})
	if len(registered) != 200 || registered["nixl.memory.registered{i=249}"] != 1 {
		t.Errorf("%d closed agents are reported, want the newest 200", len(registered))
	}
	for key := range metrictest.Values(collect(t, b.Reader)) {
		if strings.Contains(key, "empty") {
			t.Errorf("%s is reported of an agent that counted nothing", key)
		}
	}
}

// Whatever is closed and made while readers collect, no sum goes back, none
// counts twice, and nothing is lost.
func TestAgentsConcurrentSafe(t *testing.T) {
	eachTemporality(t, func(t *testing.T, b *backend) {
		const workers, lives = 4, 100
		var working sync.WaitGroup
		for range workers {
			working.Go(func() {
				for range lives {
					a := b.agent(t, "a")
					a.MemoryRegistered(1)
					a.Event(agent.EventCustom, "x", 1)
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
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			b.Collect(t)
		}
		for _, key := range []string{
			"nixl.memory.registered{}", "nixl.event.value{nixl.event.category=custom,nixl.event.name=x}",
		} {
			if n := b.Sums[key]; n != workers*lives {
				t.Errorf("%s is %d, want %d", key, n, workers*lives)
			}
		}
	})
}

var errRefused = errors.New("refused")

// fickle is a provider that can't be compared, and whose first callback is
// refused.
type fickle struct {
	noop.MeterProvider
	refusals []int
}

func (f fickle) Meter(string, ...metric.MeterOption) metric.Meter { return &fickleMeter{f: f} }

type fickleMeter struct {
	noop.Meter
	f fickle
}

func (m *fickleMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	if m.f.refusals[0]--; m.f.refusals[0] >= 0 {
		return nil, errRefused
	}
	return noop.Registration{}, nil
}

// What a provider refuses once isn't refused for ever, whatever the provider.
func TestProviderThatRefusesOnce(t *testing.T) {
	refusals := []int{1}
	for name, provider := range map[string]metric.MeterProvider{
		"comparable":   &fickle{refusals: refusals},
		"incomparable": fickle{refusals: refusals},
	} {
		t.Run(name, func(t *testing.T) {
			refusals[0] = 1
			if _, err := agent.New("a", agent.WithMeterProvider(provider)); !errors.Is(err, errRefused) {
				t.Errorf("the error is %v", err)
			}
			for range 2 {
				a, err := agent.New("a", agent.WithMeterProvider(provider))
				if err != nil {
					t.Fatal(err)
				}
				closeAgent(t, a)
			}
		})
	}
}
