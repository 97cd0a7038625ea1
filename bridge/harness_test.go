package bridge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge"
)

// start is when fake clocks start.
var start = time.Date(2025, time.January, 15, 14, 30, 25, 0, time.UTC)

// clock is a clock that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a Runtime, its clock and a reader of what it reports.
type world struct {
	*bridge.Runtime
	clock  *clock
	reader *sdkmetric.ManualReader
}

// newWorld makes a world. The options come after the world's own.
func newWorld(t *testing.T, opts ...bridge.Option) *world {
	t.Helper()
	return newWorldWith(t, sdkmetric.NewManualReader(), opts...)
}

func newWorldWith(t *testing.T, reader *sdkmetric.ManualReader, opts ...bridge.Option) *world {
	t.Helper()
	w := &world{clock: newClock(), reader: reader}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	w.Runtime = newRuntime(t, append([]bridge.Option{
		bridge.WithMeterProvider(provider), bridge.WithClock(w.clock.Now),
	}, opts...)...)
	return w
}

func newRuntime(t *testing.T, opts ...bridge.Option) *bridge.Runtime {
	t.Helper()
	rt, err := bridge.NewRuntime(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return rt
}

// collect is what a reader gets.
func collect(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	var all []metricdata.Metrics
	for _, sm := range rm.ScopeMetrics {
		if sm.Scope.Name != bridge.ScopeName {
			t.Errorf("scope %q, want %q", sm.Scope.Name, bridge.ScopeName)
		}
		all = append(all, sm.Metrics...)
	}
	return all
}

func (w *world) collect(t *testing.T) []metricdata.Metrics {
	t.Helper()
	return collect(t, w.reader)
}

// values is the value of each series, and the count of a histogram's, under
// the metric's name and the attributes: `name{key=value,…}`.
func values(ms []metricdata.Metrics) map[string]float64 {
	all := make(map[string]float64)
	for _, m := range ms {
		eachPoint(m, func(set attribute.Set, v float64) {
			key := fmt.Sprintf("%s{%s}", m.Name, set.Encoded(attribute.DefaultEncoder()))
			all[key] += v
		})
	}
	return all
}

func eachPoint(m metricdata.Metrics, f func(attribute.Set, float64)) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Count))
		}
	case metricdata.ExponentialHistogram[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Count))
		}
	default:
		panic(fmt.Sprintf("%s is a %T", m.Name, data))
	}
}

// find is the metric of a name, and fails the test if there is none.
func find(t *testing.T, ms []metricdata.Metrics, name string) metricdata.Metrics {
	t.Helper()
	for _, m := range ms {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %s", name)
	return metricdata.Metrics{}
}

// data is what the metric of a name has, which must be a T.
func data[T metricdata.Aggregation](t *testing.T, ms []metricdata.Metrics, name string) T {
	t.Helper()
	d, ok := find(t, ms, name).Data.(T)
	if !ok {
		t.Fatalf("%s is no %T", name, d)
	}
	return d
}

// telemetry is the snapshot of a kernel that must be there.
func (w *world) telemetry(t *testing.T, id string) bridge.KernelTelemetry {
	t.Helper()
	s, ok := w.Telemetry(id)
	if !ok {
		t.Fatalf("no telemetry of %q", id)
	}
	return s
}
