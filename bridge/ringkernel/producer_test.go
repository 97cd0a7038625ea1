// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// exporter records its last successful export.
type exporter struct {
	mu   sync.Mutex
	last []metricdata.Metrics
	err  error
}

func (*exporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (*exporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (e *exporter) Export(_ context.Context, rm *metricdata.ResourceMetrics) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	e.last = nil
	for _, sm := range rm.ScopeMetrics {
		e.last = append(e.last, sm.Metrics...)
	}
	return nil
}

func (*exporter) ForceFlush(context.Context) error { return nil }

func (*exporter) Shutdown(context.Context) error { return nil }

func TestShutdownExportsAllLastValues(t *testing.T) {
	const k = "ringkernel.kernel.id=k"
	counters := map[string]float64{
		"ringkernel.messages.received{" + k + "}":                             2,
		"ringkernel.messages.sent{" + k + "}":                                 1,
		"ringkernel.messages.processed{" + k + "}":                            2,
		"ringkernel.messages.dropped{" + k + ",ringkernel.queue.name=input}":  1,
		"ringkernel.messages.dropped{" + k + ",ringkernel.queue.name=output}": 0,
		"ringkernel.message.duration{" + k + "}":                              2,
		"ringkernel.errors{error.type=timeout," + k + "}":                     1,
	}
	gauges := map[string]float64{
		"ringkernel.queue.size{" + k + ",ringkernel.queue.name=input}":            2,
		"ringkernel.queue.capacity{" + k + ",ringkernel.queue.name=input}":        8,
		"ringkernel.uptime{" + k + "}":                                            1,
		"ringkernel.last_message.time{" + k + "}":                                 float64(start.Unix()),
		"ringkernel.kernel.status{" + k + ",ringkernel.kernel.state=created}":     0,
		"ringkernel.kernel.status{" + k + ",ringkernel.kernel.state=launched}":    0,
		"ringkernel.kernel.status{" + k + ",ringkernel.kernel.state=active}":      0,
		"ringkernel.kernel.status{" + k + ",ringkernel.kernel.state=deactivated}": 0,
		"ringkernel.kernel.status{" + k + ",ringkernel.kernel.state=terminating}": 0,
		"ringkernel.kernel.status{" + k + ",ringkernel.kernel.state=terminated}":  1,
	}
	for _, unregister := range []bool{false, true} {
		t.Run(fmt.Sprintf("unregistered=%v", unregister), func(t *testing.T) {
			clock := metrictest.NewClock()
			rt := ringkernel.NewRuntime(ringkernel.WithClock(clock.Now))
			e := &exporter{}
			provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(
				sdkmetric.NewPeriodicReader(e, sdkmetric.WithProducer(rt.NewProducer()))))
			use(t, &world{Runtime: rt, clock: clock}, "k")
			setState(t, rt.Kernel("k"), ringkernel.StateTerminated)
			want := make(map[string]float64)
			maps.Copy(want, counters)
			if unregister {
				rt.Unregister("k")
			} else {
				maps.Copy(want, gauges)
			}
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, metrictest.Values(e.last)); d != "" {
				t.Errorf("exported (-want +got):\n%s", d)
			}
		})
	}
}

func TestUnregisteredKernelSurvivesAFailedExport(t *testing.T) {
	rt := ringkernel.NewRuntime()
	e := &exporter{err: errors.New("backend is unavailable")}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(
		sdkmetric.NewPeriodicReader(e, sdkmetric.WithProducer(rt.NewProducer()))))
	rt.Register("k").Sent(t.Context())
	rt.Unregister("k")
	if err := provider.ForceFlush(t.Context()); err == nil {
		t.Error("the export didn't fail")
	}
	e.err = nil
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := metrictest.Values(e.last)["ringkernel.messages.sent{ringkernel.kernel.id=k}"]; n != 1 {
		t.Errorf("sent %v, want 1", n)
	}
}

func TestUnregisteredKernelIsInTwoMoreCollectionsOfEachReader(t *testing.T) {
	const sent = "ringkernel.messages.sent{ringkernel.kernel.id=k}"
	w := newWorld(t)
	slow := newReader(w.Runtime)
	k := w.Register("k")
	k.Sent(t.Context())
	w.Unregister("k")
	for i, want := range []float64{2, 3} {
		k.Sent(t.Context()) // is still counted
		if got := metrictest.Values(w.collect(t))[sent]; got != want {
			t.Errorf("collection %d: sent %v, want %v", i, got, want)
		}
	}
	if got := metrictest.Values(w.collect(t)); len(got) > 0 {
		t.Errorf("the third collection has %v", got)
	}
	if got := metrictest.Values(collect(t, slow))[sent]; got != 3 {
		t.Errorf("another reader's first collection: sent %v, want 3", got)
	}
}

// If an ID is registered again, its snapshot restarts. Its series continue if they
// are still reported; otherwise, they restart with a new start time.
func TestRegisterAfterUnregisterRestartsTheSnapshot(t *testing.T) {
	for _, tt := range []struct {
		collections int // between
		sent        int64
		since       time.Time
	}{
		{0, 3, start},
		{1, 3, start},
		{2, 1, start.Add(time.Second)},
	} {
		t.Run(fmt.Sprintf("after %d collections", tt.collections), func(t *testing.T) {
			w := newWorld(t)
			k := w.Register("k")
			k.Sent(t.Context())
			k.Sent(t.Context())
			setState(t, k, ringkernel.StateTerminated)
			w.Unregister("k")
			for range tt.collections {
				w.collect(t)
			}
			w.clock.Advance(time.Second)
			w.Register("k").Sent(t.Context())
			points := metrictest.Data[metricdata.Sum[int64]](t, w.collect(t), "ringkernel.messages.sent").DataPoints
			if len(points) != 1 || points[0].Value != tt.sent || !points[0].StartTime.Equal(tt.since) {
				t.Errorf("points %+v, want %d sent since %v", points, tt.sent, tt.since)
			}
			s := w.telemetry(t, "k")
			if s.MessagesSent != 1 || s.State != ringkernel.StateCreated || s.StartTime != start.Add(time.Second) {
				t.Errorf("the snapshot didn't restart: %+v", s)
			}
		})
	}
}

func TestUncollectedKernelsAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 10_100 {
		id := fmt.Sprint(i)
		w.Register(id)
		w.Unregister(id)
	}
	points := metrictest.Data[metricdata.Sum[int64]](t, w.collect(t), "ringkernel.messages.sent").DataPoints
	if len(points) != 10_000 {
		t.Errorf("%d unregistered kernels are reported, want 10000", len(points))
	}
}

func TestProducerWithoutAReaderReportsAnError(t *testing.T) {
	for _, collected := range []bool{false, true} {
		t.Run(fmt.Sprintf("collected=%v", collected), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var handled []error
				otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled = append(handled, err) }))
				defer otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Print(err) }))
				rt := ringkernel.NewRuntime()
				reader := newReader(rt)
				if collected {
					collect(t, reader)
				}
				pass(2 * time.Minute)
				synctest.Wait()
				switch {
				case collected && len(handled) > 0:
					t.Errorf("handled %v", handled)
				case !collected && (len(handled) != 1 || !strings.Contains(handled[0].Error(), "metric.WithProducer")):
					t.Errorf("handled %v, want one error that names metric.WithProducer", handled)
				}
			})
		})
	}
}

func TestExponentialHistogramHasTheRecordedValues(t *testing.T) {
	w := newWorld(t, ringkernel.WithAttributes(attribute.Int("rank", 1)))
	reader := newReader(w.Runtime, ringkernel.WithExponentialHistogram())
	w.Register("idle")
	k := w.Register("k")
	w.clock.Advance(time.Minute)
	for _, d := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond} {
		k.Processed(t.Context(), d)
	}
	want := metricdata.ExponentialHistogram[float64]{
		Temporality: metricdata.CumulativeTemporality,
		DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{
			Attributes: attribute.NewSet(attribute.Int("rank", 1), attribute.String("ringkernel.kernel.id", "k")),
			StartTime:  start,
			Time:       start.Add(time.Minute),
			Count:      4,
			Sum:        1.25,
			Min:        metricdata.NewExtrema(0.0),
			Max:        metricdata.NewExtrema(0.5),
			Scale:      6,
			ZeroCount:  1,
			// Upper bounds are inclusive: 2^-2 is in bucket -2*64-1, 2^-1 in
			// -64-1.
			PositiveBucket: metricdata.ExponentialBucket{
				Offset: -129, Counts: append(append([]uint64{1}, make([]uint64, 63)...), 2),
			},
		}},
	}
	got := metrictest.Data[metricdata.ExponentialHistogram[float64]](t, collect(t, reader), "ringkernel.message.duration")
	compare := []cmp.Option{
		cmp.Comparer(func(a, b attribute.Set) bool { return a.Equals(&b) }),
		cmp.Comparer(func(a, b metricdata.Extrema[float64]) bool { return a == b }),
	}
	if d := cmp.Diff(want, got, compare...); d != "" {
		t.Errorf("histogram (-want +got):\n%s", d)
	}
}

func TestHistogramsAgreeWithTheSDK(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	reader := sdkmetric.NewManualReader()
	histogram, err := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(ringkernel.ScopeName).
		Float64Histogram("ringkernel.message.duration", metric.WithExplicitBucketBoundaries(semconv.KernelDurationBounds()...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		d := time.Duration(math.Exp(float64(i) / 800))
		k.Processed(t.Context(), d)
		histogram.Record(t.Context(), d.Seconds())
	}
	point := func(r sdkmetric.Reader) metricdata.HistogramDataPoint[float64] {
		return metrictest.Data[metricdata.Histogram[float64]](t, collect(t, r), "ringkernel.message.duration").DataPoints[0]
	}
	ours, theirs := point(w.reader), point(reader)
	if d := cmp.Diff(theirs.BucketCounts, ours.BucketCounts); d != "" {
		t.Errorf("counts (-SDK +ours):\n%s", d)
	}
	if math.Abs(ours.Sum-theirs.Sum) > 1e-9*theirs.Sum || ours.Min != theirs.Min || ours.Max != theirs.Max {
		t.Errorf("got  %+v\nwant %+v", ours, theirs)
	}
}

func TestMemoryOfUnregisteredKernelsIsFreed(t *testing.T) {
	rt := ringkernel.NewRuntime()
	reader := newReader(rt)
	rt.Register("stays").Processed(t.Context(), us)
	inUse := func() uint64 {
		for range 2 { // unregistered kernels are reported twice
			collect(t, reader)
		}
		runtime.GC()
		runtime.GC() // frees objects with finalizers or in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	for i := range 10_000 {
		k := rt.Register(kernelID(i))
		k.Received(t.Context())
		k.Processed(t.Context(), latency(i))
		k.Error(t.Context(), codeError{"timeout"})
	}
	during := inUse()
	for i := range 10_000 {
		rt.Unregister(kernelID(i))
	}
	after := inUse()
	if during < 2*before {
		t.Fatalf("10,000 kernels raise the memory in use only from %d to %d bytes", before, during)
	}
	if after > before+before/10 {
		t.Errorf("%d bytes in use after 10,000 kernels were unregistered, %d before any was registered", after, before)
	}
}
