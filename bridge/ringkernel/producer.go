package ringkernel

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// LatencyProducer reports ringkernel.message.duration past the SDK's
// instruments: from the lock-free histogram that every kernel has anyway, as
// an exponential histogram of at most 160 buckets.
//
// It takes the place of the SDK's Float64Histogram, whose Record is the dear
// part of [Kernel.Processed]: 110 ns of 120. Take it where a message takes a
// few microseconds or less; otherwise leave the latencies to the SDK, as a
// Producer has its limits:
//
//   - The SDK's views don't apply: name, buckets and attributes are as they are.
//   - The temporality is cumulative, from when the kernel was registered,
//     whatever the reader prefers.
//   - There are no exemplars.
//
// A reader asks it at each collection, and the point has the resource of the
// reader's MeterProvider. It is given to both:
//
//	latencies := ringkernel.NewLatencyProducer()
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(latencies))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	rt, err := ringkernel.NewRuntime(
//		ringkernel.WithMeterProvider(provider), ringkernel.WithLatencyProducer(latencies))
//
// Several readers may share one. So may several Runtimes, if [WithAttributes]
// tells their points apart.
type LatencyProducer struct {
	mu       sync.Mutex
	runtimes []*Runtime
}

var _ sdkmetric.Producer = (*LatencyProducer)(nil)

// NewLatencyProducer makes a producer that has no Runtime yet.
func NewLatencyProducer() *LatencyProducer { return &LatencyProducer{} }

func (p *LatencyProducer) add(r *Runtime) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runtimes = append(p.runtimes, r)
}

func (p *LatencyProducer) remove(r *Runtime) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runtimes = slices.DeleteFunc(p.runtimes, func(o *Runtime) bool { return o == r })
}

// Produce is the latencies of all kernels that have processed a message. It
// returns nothing when there is none, and never an error.
func (p *LatencyProducer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	runtimes := slices.Clone(p.runtimes)
	p.mu.Unlock()

	var data []metricdata.ExponentialHistogramDataPoint[float64]
	for _, r := range runtimes {
		data = r.appendLatencies(data)
	}
	if len(data) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: ScopeName},
		Metrics: []metricdata.Metrics{{
			Name:        semconv.KernelMessageDuration.Name,
			Description: semconv.KernelMessageDuration.Description,
			Unit:        semconv.KernelMessageDuration.Unit,
			Data: metricdata.ExponentialHistogram[float64]{
				Temporality: metricdata.CumulativeTemporality,
				DataPoints:  data,
			},
		}},
	}}, nil
}

func (r *Runtime) appendLatencies(
	data []metricdata.ExponentialHistogramDataPoint[float64],
) []metricdata.ExponentialHistogramDataPoint[float64] {
	reg := r.registry.Load()
	now := r.now()
	for _, k := range reg.live {
		data = k.appendLatency(data, now)
	}
	for _, k := range reg.retired {
		data = k.appendLatency(data, now)
	}
	return data
}

func (k *Kernel) appendLatency(
	data []metricdata.ExponentialHistogramDataPoint[float64], now time.Time,
) []metricdata.ExponentialHistogramDataPoint[float64] {
	var sum expo.Sum
	for i := range k.lanes {
		if s := k.lanes[i].Load(); s != nil {
			sum.Add(&s.latency)
		}
	}
	p := sum.Point()
	if p.Count == 0 {
		return data
	}
	return append(data, metricdata.ExponentialHistogramDataPoint[float64]{
		Attributes:     k.points.set,
		StartTime:      k.created,
		Time:           now,
		Count:          p.Count,
		Sum:            p.Sum,
		Min:            metricdata.NewExtrema(p.Min),
		Max:            metricdata.NewExtrema(p.Max),
		Scale:          p.Scale,
		ZeroCount:      p.Zeros,
		PositiveBucket: metricdata.ExponentialBucket{Offset: p.Offset, Counts: p.Counts},
	})
}
