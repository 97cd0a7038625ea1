// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// The metrics are exactly those of package semconv, each with its name, kind, unit,
// description and attributes, for both kinds of histogram.
func TestMetricsAreThoseOfSemconv(t *testing.T) {
	for name, opts := range map[string][]ringkernel.ProducerOption{
		"explicit buckets": nil, "exponential buckets": {ringkernel.WithExponentialHistogram()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ringkernel.WithDerivedMetrics())
			use(t, w, "k")
			var want, got []string
			for _, m := range semconv.RingKernel() {
				want = append(want, fmt.Sprint(m.Name, m.Kind, m.Number, m.Unit, m.Description, sorted(m.Attributes)))
			}
			for _, m := range collect(t, newReader(w.Runtime, opts...)) {
				kind, number := kindOf(t, m)
				metrictest.EachPoint(m, func(set attribute.Set, _ float64) {
					got = append(got, fmt.Sprint(m.Name, kind, number, m.Unit, m.Description, keys(set)))
				})
			}
			slices.Sort(want)
			slices.Sort(got)
			if d := cmp.Diff(want, slices.Compact(got)); d != "" {
				t.Errorf("reported (-semconv +got):\n%s", d)
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

func TestEachMetricHasItsValue(t *testing.T) {
	w := newWorld(t)
	use(t, w, "k")
	want := map[string]float64{
		"ringkernel.messages.received{ringkernel.kernel.id=k}":                             2,
		"ringkernel.messages.sent{ringkernel.kernel.id=k}":                                 1,
		"ringkernel.messages.processed{ringkernel.kernel.id=k}":                            2,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=input}":  1,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=output}": 0,
		"ringkernel.message.duration{ringkernel.kernel.id=k}":                              2,
		"ringkernel.errors{error.type=timeout,ringkernel.kernel.id=k}":                     1,
		"ringkernel.queue.size{ringkernel.kernel.id=k,ringkernel.queue.name=input}":        2,
		"ringkernel.queue.capacity{ringkernel.kernel.id=k,ringkernel.queue.name=input}":    8,
		"ringkernel.uptime{ringkernel.kernel.id=k}":                                        1,
		"ringkernel.last_message.time{ringkernel.kernel.id=k}":                             float64(start.Unix()),
	}
	for _, s := range []string{"created", "launched", "active", "deactivated", "terminating", "terminated"} {
		want["ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state="+s+"}"] = 0
	}
	want["ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state=active}"] = 1
	if d := cmp.Diff(want, metrictest.Values(w.collect(t))); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

// Counters start at 0, so that the first increase is visible. Unknown values aren't
// reported.
func TestCountersStartAtZero(t *testing.T) {
	w := newWorld(t)
	w.Register("k")
	got := metrictest.Values(w.collect(t))
	maps.DeleteFunc(got, func(s string, _ float64) bool { return strings.HasPrefix(s, "ringkernel.kernel.status") })
	want := map[string]float64{
		"ringkernel.messages.received{ringkernel.kernel.id=k}":                             0,
		"ringkernel.messages.sent{ringkernel.kernel.id=k}":                                 0,
		"ringkernel.messages.processed{ringkernel.kernel.id=k}":                            0,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=input}":  0,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=output}": 0,
		"ringkernel.uptime{ringkernel.kernel.id=k}":                                        0,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func TestDurationBoundsAreInclusive(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	bounds := semconv.KernelDurationBounds()
	want := make([]uint64, len(bounds)+1)
	for i, b := range bounds {
		at := time.Duration(math.Round(b * 1e9))
		k.Processed(t.Context(), at)
		k.Processed(t.Context(), at+1)
		want[i]++
		want[i+1]++
	}
	p := metrictest.Data[metricdata.Histogram[float64]](t, w.collect(t), "ringkernel.message.duration").DataPoints[0]
	if d := cmp.Diff(bounds, p.Bounds); d != "" {
		t.Errorf("bounds (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, p.BucketCounts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	lo, _ := p.Min.Value()
	hi, _ := p.Max.Value()
	if lo != 100e-9 || hi != 10.000000001 || p.Count != uint64(2*len(bounds)) {
		t.Errorf("min %v, max %v, count %d", lo, hi, p.Count)
	}
}

// The p50 and p99 that a backend estimates from the buckets are in the right
// bucket. Those of a snapshot are within 0.6% of the true values.
func TestQuantilesOfAKnownSampleAreAccurate(t *testing.T) {
	for _, typical := range []time.Duration{80, 300, 3 * time.Microsecond, 40 * time.Microsecond, 2 * time.Millisecond} {
		t.Run(typical.String(), func(t *testing.T) {
			w := newWorld(t)
			k := w.Register("k")
			r := rand.New(rand.NewPCG(1, uint64(typical)))
			sample := make([]time.Duration, 20_000)
			for i := range sample {
				sample[i] = time.Duration(float64(typical) * math.Exp(r.NormFloat64()))
				k.Processed(t.Context(), sample[i])
			}
			slices.Sort(sample)
			p := metrictest.Data[metricdata.Histogram[float64]](t, w.collect(t), "ringkernel.message.duration").DataPoints[0]
			s := w.telemetry(t, "k")
			for _, q := range []struct {
				rank     float64
				snapshot time.Duration
			}{{0.5, s.P50Latency}, {0.99, s.P99Latency}} {
				want := sample[int(math.Ceil(q.rank*float64(len(sample))))-1]
				bucket, _ := slices.BinarySearch(p.Bounds, want.Seconds())
				shown, _ := slices.BinarySearch(p.Bounds, backendQuantile(p, q.rank))
				if bucket != shown {
					t.Errorf("quantile %v: a backend shows bucket %d, true is %d", q.rank, shown, bucket)
				}
				if off := math.Abs(float64(q.snapshot-want)) / float64(want); off > 0.006 && q.snapshot-want > 1 {
					t.Errorf("quantile %v: the snapshot has %v, true is %v", q.rank, q.snapshot, want)
				}
			}
		})
	}
}

// backendQuantile interpolates in the bucket, as Prometheus does.
func backendQuantile(p metricdata.HistogramDataPoint[float64], q float64) float64 {
	rank, passed, lower := q*float64(p.Count), 0.0, 0.0
	for i, n := range p.BucketCounts {
		if passed+float64(n) >= rank {
			return lower + (p.Bounds[i]-lower)*(rank-passed)/float64(n)
		}
		passed, lower = passed+float64(n), p.Bounds[i]
	}
	return lower
}

func TestEachReaderGetsAllValues(t *testing.T) {
	w := newWorld(t)
	other := newReader(w.Runtime)
	use(t, w, "k")
	if d := cmp.Diff(metrictest.Values(w.collect(t)), metrictest.Values(collect(t, other))); d != "" {
		t.Errorf("the readers differ:\n%s", d)
	}
}

func TestScopeHasTheVersionOfTheModule(t *testing.T) {
	w := newWorld(t)
	w.Register("k")
	var rm metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	want := instrumentation.Scope{Name: "github.com/nixl-otel/nixl-otel/bridge/ringkernel", Version: scope.Version()}
	if got := rm.ScopeMetrics[0].Scope; got != want || got.Version == "" {
		t.Errorf("scope %+v, want %+v", got, want)
	}
}

func TestAttributesAreOnEveryPoint(t *testing.T) {
	w := newWorld(t,
		ringkernel.WithAttributes(attribute.String("host.gpu", "0")),
		ringkernel.WithAttributes(attribute.Int("rank", 3), attribute.String(semconv.KernelID, "not this")))
	use(t, w, "k")
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

// A kernel ID can be any string, but strings in OTLP must be UTF-8.
func TestIDIsReportedAsValidUTF8(t *testing.T) {
	w := newWorld(t)
	use(t, w, "k\xff")
	if _, ok := w.Telemetry("k\xff"); !ok {
		t.Error("the kernel isn't found by its ID")
	}
	if got := metrictest.Values(w.collect(t))["ringkernel.messages.sent{ringkernel.kernel.id=k\uFFFD}"]; got != 1 {
		t.Errorf("sent = %v, want 1", got)
	}
}
