package ringkernel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// newProducerWorld reports the latencies through a producer.
func newProducerWorld(t *testing.T, opts ...ringkernel.Option) (*world, *ringkernel.LatencyProducer) {
	t.Helper()
	latencies := ringkernel.NewLatencyProducer()
	return newWorldWith(t, sdkmetric.NewManualReader(sdkmetric.WithProducer(latencies)),
		append(opts, ringkernel.WithLatencyProducer(latencies))...), latencies
}

func TestLatencyProducer(t *testing.T) {
	w, _ := newProducerWorld(t, ringkernel.WithAttributes(attribute.Int("rank", 1)))
	w.Register("idle")
	k := w.Register("k")
	w.clock.Advance(time.Minute)
	for _, d := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond} {
		k.Processed(d)
	}
	var found []metricdata.Metrics
	for _, m := range w.collect(t) {
		if m.Name == "ringkernel.message.duration" {
			found = append(found, m)
		}
	}
	want := []metricdata.Metrics{{
		Name:        "ringkernel.message.duration",
		Description: "Time that the kernel took to process each message.",
		Unit:        "s",
		Data: metricdata.ExponentialHistogram[float64]{
			Temporality: metricdata.CumulativeTemporality,
			DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{
				Attributes: attribute.NewSet(
					attribute.Int("rank", 1), attribute.String("ringkernel.kernel.id", "k")),
				StartTime: start,
				Time:      start.Add(time.Minute),
				Count:     4,
				Sum:       1.25,
				Min:       metricdata.NewExtrema(0.0),
				Max:       metricdata.NewExtrema(0.5),
				Scale:     6,
				ZeroCount: 1,
				// A bound belongs to the bucket below it: 2^-2 is in bucket
				// -2*64-1, 2^-1 in -64-1.
				PositiveBucket: metricdata.ExponentialBucket{Offset: -129, Counts: append(append([]uint64{1},
					make([]uint64, 63)...), 2)},
			}},
		},
	}}
	compare := []cmp.Option{
		cmp.Comparer(func(a, b attribute.Set) bool { return a.Equals(&b) }),
		cmp.Comparer(func(a, b metricdata.Extrema[float64]) bool { return a == b }),
	}
	if d := cmp.Diff(want, found, compare...); d != "" {
		t.Errorf("the metric, which must be there once (-want +got):\n%s", d)
	}
}

// The SDK's own exponential histogram has the same values.
func TestLatencyProducerAgreesWithSDK(t *testing.T) {
	producer, _ := newProducerWorld(t)
	reader := sdkmetric.NewManualReader()
	sdk := newWorld(t, ringkernel.WithMeterProvider(sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(reader),
		sdkmetric.WithView(sdkmetric.NewView(
			sdkmetric.Instrument{Name: "ringkernel.message.duration"},
			sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}},
		)),
	)))
	for _, w := range []*world{producer, sdk} {
		k := w.Register("k")
		for i := range 2000 {
			k.Processed(time.Duration(i*i) * time.Microsecond)
		}
	}
	points := func(r sdkmetric.Reader) metricdata.ExponentialHistogramDataPoint[float64] {
		return metrictest.Data[metricdata.ExponentialHistogram[float64]](t, collect(t, r), "ringkernel.message.duration").DataPoints[0]
	}
	ours, theirs := points(producer.reader), points(reader)
	if ours.Scale != theirs.Scale || ours.Count != theirs.Count || ours.ZeroCount != theirs.ZeroCount ||
		ours.Min != theirs.Min || ours.Max != theirs.Max {
		t.Errorf("got  %+v\nwant %+v", ours, theirs)
	}
	if d := cmp.Diff(theirs.PositiveBucket, ours.PositiveBucket); d != "" {
		t.Errorf("buckets (-SDK +ours):\n%s", d)
	}
}

func TestLatencyProducerWithoutLatencies(t *testing.T) {
	_, latencies := newProducerWorld(t)
	if sm, err := latencies.Produce(t.Context()); sm != nil || err != nil {
		t.Errorf("Produce() = %v, %v, want nothing", sm, err)
	}
}

// Runtimes may share a producer, and each leaves it when it is closed. A
// kernel that was unregistered stays.
func TestLatencyProducerOfTwoRuntimes(t *testing.T) {
	w, latencies := newProducerWorld(t, ringkernel.WithAttributes(attribute.String("rt", "1")))
	other := newWorld(t, ringkernel.WithLatencyProducer(latencies), ringkernel.WithAttributes(attribute.String("rt", "2")))
	w.Register("k").Processed(time.Second)
	other.Register("k").Processed(time.Second)
	other.RecordProcess("k", time.Second)
	other.Unregister("k")

	const series = "ringkernel.message.duration{ringkernel.kernel.id=k,rt="
	got := metrictest.Values(w.collect(t))
	if got[series+"1}"] != 1 || got[series+"2}"] != 2 {
		t.Errorf("reported %v", got)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got = metrictest.Values(w.collect(t))
	if _, ok := got[series+"1}"]; ok || got[series+"2}"] != 2 {
		t.Errorf("after one was closed: %v", got)
	}
}
