package ringkernel_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// use gives every metric a point.
func use(w *world, id string) {
	k := w.Register(id)
	k.SetState(ringkernel.StateActive)
	k.SetQueueSize(ringkernel.InputQueue, 2)
	k.SetQueueCapacity(ringkernel.InputQueue, 8)
	k.Received()
	k.Received()
	k.Sent()
	k.Dropped()
	k.Processed(3 * time.Millisecond)
	k.Processed(3 * time.Millisecond)
	k.Error(errors.New("no"))
	w.clock.Advance(time.Second)
}

// What is reported is the catalogue: no metric more or less, each with its
// name, kind, unit, description and attributes. So is it with a LatencyProducer.
func TestMetricsAreTheCatalogue(t *testing.T) {
	for name, latencies := range map[string]*ringkernel.LatencyProducer{
		"SDK's histogram": nil, "LatencyProducer": ringkernel.NewLatencyProducer(),
	} {
		t.Run(name, func(t *testing.T) {
			var opts []sdkmetric.ManualReaderOption
			if latencies != nil {
				opts = append(opts, sdkmetric.WithProducer(latencies))
			}
			w := newWorldWith(t, sdkmetric.NewManualReader(opts...),
				ringkernel.WithDerivedMetrics(true), ringkernel.WithLatencyProducer(latencies))
			use(w, "k")
			var want, got []string
			for _, m := range semconv.RingKernel() {
				want = append(want, fmt.Sprint(m.Name, m.Kind, m.Number, m.Unit, m.Description, sorted(m.Attributes)))
			}
			for _, m := range w.collect(t) {
				kind, number := kindOf(t, m)
				metrictest.EachPoint(m, func(set attribute.Set, _ float64) {
					got = append(got, fmt.Sprint(m.Name, kind, number, m.Unit, m.Description, keys(set)))
				})
			}
			slices.Sort(want)
			slices.Sort(got)
			if d := cmp.Diff(want, slices.Compact(got)); d != "" {
				t.Errorf("reported (-catalogue +got):\n%s", d)
			}
		})
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func keys(set attribute.Set) []string {
	var ks []string
	for _, kv := range set.ToSlice() {
		ks = append(ks, string(kv.Key))
	}
	return sorted(ks)
}

func kindOf(t *testing.T, m metricdata.Metrics) (semconv.Kind, semconv.Number) {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			return semconv.Counter, semconv.Int64
		}
		return semconv.UpDownCounter, semconv.Int64
	case metricdata.Gauge[float64]:
		return semconv.Gauge, semconv.Float64
	case metricdata.Histogram[float64], metricdata.ExponentialHistogram[float64]:
		return semconv.Histogram, semconv.Float64
	}
	t.Fatalf("%s is a %T", m.Name, m.Data)
	return 0, 0
}

func TestMetricValues(t *testing.T) {
	w := newWorld(t)
	use(w, "k")
	want := map[string]float64{
		"ringkernel.messages.received{ringkernel.kernel.id=k}":                          2,
		"ringkernel.messages.sent{ringkernel.kernel.id=k}":                              1,
		"ringkernel.messages.processed{ringkernel.kernel.id=k}":                         2,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k}":                           1,
		"ringkernel.message.duration{ringkernel.kernel.id=k}":                           2,
		"ringkernel.errors{error.type=*errors.errorString,ringkernel.kernel.id=k}":      1,
		"ringkernel.queue.size{ringkernel.kernel.id=k,ringkernel.queue.name=input}":     2,
		"ringkernel.queue.capacity{ringkernel.kernel.id=k,ringkernel.queue.name=input}": 8,
		"ringkernel.uptime{ringkernel.kernel.id=k}":                                     1,
		"ringkernel.last_message.time{ringkernel.kernel.id=k}":                          float64(start.Unix()),
	}
	for _, s := range []string{"created", "launched", "active", "deactivated", "terminating", "terminated"} {
		want["ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state="+s+"}"] = 0
	}
	want["ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state=active}"] = 1
	if d := cmp.Diff(want, metrictest.Values(w.collect(t))); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

// A fresh kernel's counters are there at 0, so that a rate has a beginning;
// what isn't known is not reported.
func TestMetricsOfAFreshKernel(t *testing.T) {
	w := newWorld(t)
	w.Register("k")
	got := metrictest.Values(w.collect(t))
	maps.DeleteFunc(got, func(s string, _ float64) bool { return strings.HasPrefix(s, "ringkernel.kernel.status") })
	want := map[string]float64{
		"ringkernel.messages.received{ringkernel.kernel.id=k}":  0,
		"ringkernel.messages.sent{ringkernel.kernel.id=k}":      0,
		"ringkernel.messages.processed{ringkernel.kernel.id=k}": 0,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k}":   0,
		"ringkernel.uptime{ringkernel.kernel.id=k}":             0,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func TestDurationBuckets(t *testing.T) {
	w := newWorld(t)
	use(w, "k")
	h := metrictest.Data[metricdata.Histogram[float64]](t, w.collect(t), "ringkernel.message.duration")
	p := h.DataPoints[0]
	if d := cmp.Diff(semconv.DurationBounds(), p.Bounds); d != "" {
		t.Errorf("bounds (-want +got):\n%s", d)
	}
	if lo, _ := p.Min.Value(); lo != 3e-3 || p.Sum != 6e-3 {
		t.Errorf("min %v and sum %v, want 0.003 and 0.006", lo, p.Sum)
	}
}

// With delta temporality, each collection has what came since the last one.
func TestDeltaTemporality(t *testing.T) {
	w := newWorldWith(t, sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(sdkmetric.DeltaTemporalitySelector)))
	const received = "ringkernel.messages.received{ringkernel.kernel.id=k}"
	const state = "ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state=active}"
	k := w.Register("k")
	k.SetState(ringkernel.StateActive)
	for _, n := range []int{3, 0, 5} {
		for range n {
			k.Received()
		}
		ms := w.collect(t)
		if got := metrictest.Values(ms)[received]; got != float64(n) {
			t.Errorf("%s = %v, want %d", received, got, n)
		}
		if got := metrictest.Values(ms)[state]; got != 1 {
			t.Errorf("%s = %v: up-down counters stay cumulative", state, got)
		}
		sum := metrictest.Data[metricdata.Sum[int64]](t, ms, "ringkernel.messages.received")
		if sum.Temporality != metricdata.DeltaTemporality || !sum.IsMonotonic {
			t.Errorf("temporality %v, monotonic %v", sum.Temporality, sum.IsMonotonic)
		}
	}
}

// Views of the provider apply: one renames a counter, one sums up over all
// kernels.
func TestViews(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(
		sdkmetric.NewView(
			sdkmetric.Instrument{Name: "ringkernel.messages.sent"}, sdkmetric.Stream{Name: "sent"},
		),
		sdkmetric.NewView(
			sdkmetric.Instrument{Name: "ringkernel.messages.processed"},
			sdkmetric.Stream{AttributeFilter: attribute.NewDenyKeysFilter("ringkernel.kernel.id")},
		),
	))
	w := newWorld(t, ringkernel.WithMeterProvider(provider))
	use(w, "a")
	use(w, "b")
	got := metrictest.Values(collect(t, reader))
	if got["sent{ringkernel.kernel.id=a}"] != 1 || got["ringkernel.messages.processed{}"] != 4 {
		t.Errorf("the views have no effect: %v", got)
	}
}

// Every reader gets everything.
func TestTwoReaders(t *testing.T) {
	one, two := sdkmetric.NewManualReader(), sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(one), sdkmetric.WithReader(two))
	w := newWorld(t, ringkernel.WithMeterProvider(provider))
	use(w, "k")
	if d := cmp.Diff(metrictest.Values(collect(t, one)), metrictest.Values(collect(t, two))); d != "" {
		t.Errorf("the readers differ:\n%s", d)
	}
}

func TestWithAttributes(t *testing.T) {
	w := newWorld(t,
		ringkernel.WithAttributes(attribute.String("host.gpu", "0")),
		ringkernel.WithAttributes(attribute.Int("rank", 3), attribute.String(semconv.KernelID, "not this")))
	use(w, "k")
	for _, m := range w.collect(t) {
		metrictest.EachPoint(m, func(set attribute.Set, _ float64) {
			gpu, _ := set.Value("host.gpu")
			rank, _ := set.Value("rank")
			id, _ := set.Value(semconv.KernelID)
			if gpu.AsString() != "0" || rank.AsInt64() != 3 || id.AsString() != "k" {
				t.Errorf("%s has %v", m.Name, set.ToSlice())
			}
		})
	}
}

// An id is anyone's string, but a string of OTLP must be UTF-8.
func TestIDThatIsNotUTF8(t *testing.T) {
	w := newWorld(t)
	use(w, "k\xff")
	if _, ok := w.Telemetry("k\xff"); !ok {
		t.Error("the kernel isn't found by its id")
	}
	if got := metrictest.Values(w.collect(t))["ringkernel.messages.sent{ringkernel.kernel.id=k\uFFFD}"]; got != 1 {
		t.Errorf("sent = %v, want 1", got)
	}
}
