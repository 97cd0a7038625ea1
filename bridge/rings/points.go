// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"iter"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// points holds the data points of all agents, by metric name.
type points struct {
	ints         map[string][]metricdata.DataPoint[int64]
	floats       map[string][]metricdata.DataPoint[float64]
	explicit     map[string][]metricdata.HistogramDataPoint[float64]
	exponentials map[string][]metricdata.ExponentialHistogramDataPoint[float64]
}

func newPoints() points {
	return points{
		ints:         make(map[string][]metricdata.DataPoint[int64]),
		floats:       make(map[string][]metricdata.DataPoint[float64]),
		explicit:     make(map[string][]metricdata.HistogramDataPoint[float64]),
		exponentials: make(map[string][]metricdata.ExponentialHistogramDataPoint[float64]),
	}
}

func (b *builder) histogram(m semconv.Metric, h *tally.Histogram, more ...attribute.KeyValue) {
	set, extrema := b.attributes.set(more...), metricdata.NewExtrema[float64]
	switch h.Kind() {
	case tally.Explicit:
		b.points.explicit[m.Name] = append(b.points.explicit[m.Name], metricdata.HistogramDataPoint[float64]{
			Attributes: set, StartTime: b.start, Time: b.at,
			Count: h.Count(), Sum: h.Sum(), Min: extrema(h.Min()), Max: extrema(h.Max()),
			Bounds: h.Bounds(), BucketCounts: h.Counts(),
		})
	case tally.Exponential:
		buckets := h.Buckets()
		b.points.exponentials[m.Name] = append(b.points.exponentials[m.Name], metricdata.ExponentialHistogramDataPoint[float64]{
			Attributes: set, StartTime: b.start, Time: b.at,
			Count: h.Count(), Sum: h.Sum(), Min: extrema(h.Min()), Max: extrema(h.Max()),
			Scale: buckets.Scale, ZeroCount: buckets.Zero,
			PositiveBucket: metricdata.ExponentialBucket{Offset: buckets.Offset, Counts: buckets.Counts},
		})
	case tally.NoHistogram:
	}
}

// histograms adds histograms of transfer times by size class.
func (b *builder) histograms(m semconv.Metric, list iter.Seq2[string, *tally.Histogram]) {
	for class, h := range list {
		switch {
		case h.Count() == 0:
		case class == "":
			b.histogram(m, h)
		default:
			b.histogram(m, h, attribute.String(semconv.TransferSizeClass, class))
		}
	}
}

// metrics returns the metrics that have points, in the order of the catalog.
func (b *builder) metrics() []metricdata.Metrics {
	var all []metricdata.Metrics
	for _, m := range semconv.NIXL() {
		if data := b.points.data(m); data != nil {
			all = append(all, metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit, Data: data})
		}
	}
	return all
}

// data returns the points of a metric, or nil if there are none.
func (p *points) data(m semconv.Metric) metricdata.Aggregation {
	const cumulative = metricdata.CumulativeTemporality
	ints, floats := p.ints[m.Name], p.floats[m.Name]
	explicit, exponentials := p.explicit[m.Name], p.exponentials[m.Name]
	switch {
	case len(ints) > 0 && m.Kind == semconv.Gauge:
		return metricdata.Gauge[int64]{DataPoints: ints}
	case len(ints) > 0:
		return metricdata.Sum[int64]{DataPoints: ints, Temporality: cumulative, IsMonotonic: m.Kind == semconv.Counter}
	case len(floats) > 0:
		return metricdata.Gauge[float64]{DataPoints: floats} // the catalog has no floating-point sums
	case len(explicit) > 0:
		return metricdata.Histogram[float64]{DataPoints: explicit, Temporality: cumulative}
	case len(exponentials) > 0:
		return metricdata.ExponentialHistogram[float64]{DataPoints: exponentials, Temporality: cumulative}
	}
	return nil
}
