package bridge_test

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
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge"
)

// backend adds up what a reader of whatever temporality gets, as a backend
// does, and fails the test where a monotonic sum goes back or ends.
type backend struct {
	reader      *sdkmetric.ManualReader
	provider    *sdkmetric.MeterProvider
	temporality metricdata.Temporality
	sums        map[string]int64
	monotonic   map[string]bool
	others      map[string]float64 // of the last collection
}

func newBackend(temporality metricdata.Temporality) *backend {
	b := &backend{
		reader: sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(
			func(sdkmetric.InstrumentKind) metricdata.Temporality { return temporality })),
		temporality: temporality,
		sums:        make(map[string]int64),
		monotonic:   make(map[string]bool),
	}
	b.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader), sdkmetric.WithCardinalityLimit(-1))
	return b
}

func (b *backend) collect(t *testing.T) {
	t.Helper()
	before := make(map[string]int64)
	var rest []metricdata.Metrics
	for _, m := range collect(t, b.reader) {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok {
			rest = append(rest, m)
			continue
		}
		for _, p := range sum.DataPoints {
			key := fmt.Sprintf("%s{%s}", m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()))
			before[key] = b.sums[key]
			b.monotonic[key] = sum.IsMonotonic
			if b.temporality == metricdata.CumulativeTemporality {
				b.sums[key] = 0
			}
			b.sums[key] += p.Value
			if sum.IsMonotonic && b.sums[key] < before[key] {
				t.Errorf("%s went back from %d to %d", key, before[key], b.sums[key])
			}
		}
	}
	for key, n := range b.sums {
		if _, ok := before[key]; !ok && b.monotonic[key] && n != 0 {
			t.Errorf("%s ended at %d", key, n)
		}
	}
	b.others = values(rest)
}

// see collects and compares the sums that aren't 0, and the last values.
func (b *backend) see(t *testing.T, want map[string]float64) {
	t.Helper()
	b.collect(t)
	got := make(map[string]float64)
	for key, n := range b.sums {
		if n != 0 && !strings.HasPrefix(key, "nixl.events{") {
			got[key] = float64(n)
		}
	}
	for key, v := range b.others {
		if strings.Contains(key, "last") {
			got[key] = v
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func eachTemporality(t *testing.T, f func(*testing.T, *backend)) {
	t.Helper()
	for _, temporality := range []metricdata.Temporality{metricdata.CumulativeTemporality, metricdata.DeltaTemporality} {
		t.Run(temporality.String(), func(t *testing.T) { f(t, newBackend(temporality)) })
	}
}

func (b *backend) agent(t *testing.T, name string, opts ...bridge.AgentOption) *bridge.Agent {
	t.Helper()
	a, err := bridge.NewAgent(name, append([]bridge.AgentOption{
		bridge.WithMeterProvider(b.provider), bridge.WithAgentNameInResource(),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func closeAgent(t *testing.T, a *bridge.Agent) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// An agent that is closed and made anew counts on, as the SDK's own counters
// do; its gauges and its memory begin anew.
func TestAgentAgain(t *testing.T) {
	eachTemporality(t, func(t *testing.T, b *backend) {
		record := func(a *bridge.Agent, bytes int64) {
			a.Transfer(bridge.Transmit, bytes, us, us)
			a.MemoryRegistered(bytes)
			a.Error(bridge.StatusBackend)
			a.Event(bridge.EventCustom, "x", uint64(bytes))
			a.EventsDropped(3)
		}
		one := b.agent(t, "a")
		record(one, 1000)
		first := map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}":                     1000,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":               1,
			"nixl.memory.registered{}":                                            1000,
			"nixl.memory.usage{}":                                                 1000,
			"nixl.errors{error.type=backend}":                                     1,
			"nixl.event.value{nixl.event.category=custom,nixl.event.name=x}":      1000,
			"nixl.telemetry.events.dropped{}":                                     3,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":              1000,
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
			"nixl.transfer.io{nixl.transfer.direction=transmit}":                     1100,
			"nixl.transfer.requests{nixl.transfer.direction=transmit}":               2,
			"nixl.memory.registered{}":                                            1100,
			"nixl.memory.usage{}":                                                 100,
			"nixl.errors{error.type=backend}":                                     2,
			"nixl.event.value{nixl.event.category=custom,nixl.event.name=x}":      1100,
			"nixl.telemetry.events.dropped{}":                                     6,
			"nixl.transfer.last.size{nixl.transfer.direction=transmit}":              100,
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
					a.Event(bridge.EventCustom, fmt.Sprint(names, i), 1)
				}
				b.collect(t)
				closeAgent(t, a)
				b.collect(t)
			}
		}
		if n := b.sums["nixl.events{otel.metric.overflow=true}"]; n != 300 {
			t.Errorf("%d events past the limit, want 3 times 100", n)
		}
	})
}

// Agents that come and go under ever new names don't pile up, and of those
// that counted nothing nothing is kept.
func TestClosedAgentsAreBounded(t *testing.T) {
	b := newBackend(metricdata.CumulativeTemporality)
	for i := range 250 {
		a := b.agent(t, "", bridge.WithAttributes(attribute.Int("i", i)))
		a.MemoryRegistered(1)
		closeAgent(t, a)
		closeAgent(t, b.agent(t, "", bridge.WithAttributes(attribute.Int("empty", i))))
	}
	registered := values([]metricdata.Metrics{find(t, collect(t, b.reader), "nixl.memory.registered")})
	if len(registered) != 200 || registered["nixl.memory.registered{i=249}"] != 1 {
		t.Errorf("%d closed agents are reported, want the newest 200", len(registered))
	}
	for key := range values(collect(t, b.reader)) {
		if strings.Contains(key, "empty") {
			t.Errorf("%s is reported of an agent that counted nothing", key)
		}
	}
}

// Kernels of a closed Runtime leave their counts to those of the same
// attributes, whether they were unregistered before or not.
func TestRuntimeAgain(t *testing.T) {
	eachTemporality(t, func(t *testing.T, b *backend) {
		var want float64
		for i := range 3 {
			rt, err := bridge.NewRuntime(bridge.WithMeterProvider(b.provider))
			if err != nil {
				t.Fatal(err)
			}
			k, gone := rt.Register("k"), rt.Register("gone")
			for range 10 - 3*i {
				k.Received()
				gone.Received()
				want++
			}
			k.Sent()
			k.Dropped()
			k.Processed(us)
			k.Error(codeError{"timeout"})
			rt.Unregister("gone")
			if s, _ := rt.Telemetry("k"); s.MessagesReceived != int64(10-3*i) {
				t.Errorf("the snapshot of Runtime %d has %d messages", i, s.MessagesReceived)
			}
			n := float64(i + 1)
			see := func() {
				t.Helper()
				b.collect(t)
				if d := cmp.Diff(map[string]float64{
					"ringkernel.messages.received{ringkernel.kernel.id=k}":         want,
					"ringkernel.messages.received{ringkernel.kernel.id=gone}":      want,
					"ringkernel.messages.sent{ringkernel.kernel.id=k}":             n,
					"ringkernel.messages.dropped{ringkernel.kernel.id=k}":          n,
					"ringkernel.messages.processed{ringkernel.kernel.id=k}":        n,
					"ringkernel.errors{error.type=timeout,ringkernel.kernel.id=k}": n,
				}, b.counters()); d != "" {
					t.Errorf("values (-want +got):\n%s", d)
				}
			}
			see()
			if err := rt.Close(); err != nil {
				t.Fatal(err)
			}
			closed := &world{Runtime: rt, clock: newClock()}
			use(closed, "k") // too late
			use(closed, "later")
			see()
		}
	})
}

// counters are those of kernels that aren't 0.
func (b *backend) counters() map[string]float64 {
	all := make(map[string]float64)
	for key, n := range b.sums {
		if n != 0 && (strings.HasPrefix(key, "ringkernel.messages") || strings.HasPrefix(key, "ringkernel.errors")) {
			all[key] = float64(n)
		}
	}
	return all
}

// A kernel that is pushed out of a Runtime's unregistered ones leaves the sum
// as it is where another Runtime has its id.
func TestPushedOutKernelOfTwoRuntimes(t *testing.T) {
	b := newBackend(metricdata.CumulativeTemporality)
	one, two := newRuntime(t, bridge.WithMeterProvider(b.provider)), newRuntime(t, bridge.WithMeterProvider(b.provider))
	two.Register("k").Sent()
	for i := range 1001 {
		id := fmt.Sprint(i)
		if i == 0 {
			id = "k"
		}
		one.Register(id).Sent()
		one.Unregister(id)
	}
	b.collect(t)
	if n := b.sums["ringkernel.messages.sent{ringkernel.kernel.id=k}"]; n != 2 {
		t.Errorf("sent %d, want 2", n)
	}
}

// Whatever is closed and made while readers collect, no sum goes back, none
// counts twice, and nothing is lost.
func TestLedgerConcurrentSafe(t *testing.T) {
	eachTemporality(t, func(t *testing.T, b *backend) {
		const workers, lives = 4, 100
		var working sync.WaitGroup
		for w := range workers {
			working.Go(func() {
				for range lives {
					a := b.agent(t, "a")
					a.MemoryRegistered(1)
					a.Event(bridge.EventCustom, "x", 1)
					rt := newRuntime(t, bridge.WithMeterProvider(b.provider))
					k := rt.Register("k")
					k.Sent()
					k.Error(codeError{fmt.Sprint(w)})
					if w%2 == 0 {
						rt.Unregister("k")
					}
					if err := errors.Join(a.Close(), rt.Close()); err != nil {
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
			b.collect(t)
		}
		for _, key := range []string{
			"nixl.memory.registered{}", "nixl.event.value{nixl.event.category=custom,nixl.event.name=x}",
			"ringkernel.messages.sent{ringkernel.kernel.id=k}",
		} {
			if n := b.sums[key]; n != workers*lives {
				t.Errorf("%s is %d, want %d", key, n, workers*lives)
			}
		}
		for w := range workers {
			key := fmt.Sprintf("ringkernel.errors{error.type=%d,ringkernel.kernel.id=k}", w)
			if n := b.sums[key]; n != lives {
				t.Errorf("%s is %d, want %d", key, n, lives)
			}
		}
	})
}

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
			if _, err := bridge.NewAgent("a", bridge.WithMeterProvider(provider)); !errors.Is(err, errRefused) {
				t.Errorf("the error is %v", err)
			}
			for range 2 {
				a, err := bridge.NewAgent("a", bridge.WithMeterProvider(provider))
				if err != nil {
					t.Fatal(err)
				}
				closeAgent(t, a)
			}
		})
	}
}
