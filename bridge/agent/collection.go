// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// collection holds the data points of one collection, by metric name.
type collection struct {
	ints       map[string][]metricdata.DataPoint[int64]
	floats     map[string][]metricdata.DataPoint[float64]
	histograms map[string][]metricdata.HistogramDataPoint[float64]

	start, now time.Time // of the current account
}

func newCollection() *collection {
	return &collection{
		ints:       make(map[string][]metricdata.DataPoint[int64]),
		floats:     make(map[string][]metricdata.DataPoint[float64]),
		histograms: make(map[string][]metricdata.HistogramDataPoint[float64]),
	}
}

// begin sets the times of an account's points. If the clock was set back, now is
// the start: backends reject a point that ends before it starts.
func (c *collection) begin(start, now time.Time) {
	c.start, c.now = start, now
	if now.Before(start) {
		c.now = start
	}
}

func (c *collection) int(m semconv.Metric, set attribute.Set, v int64, exemplars ...*exemplar) {
	p := metricdata.DataPoint[int64]{Attributes: set, StartTime: c.start, Time: c.now, Value: v}
	for _, e := range exemplars {
		if e != nil {
			p.Exemplars = append(p.Exemplars, metricdata.Exemplar[int64]{
				Time: e.at, Value: e.value, TraceID: e.trace[:], SpanID: e.span[:],
			})
		}
	}
	c.ints[m.Name] = append(c.ints[m.Name], p)
}

func (c *collection) float(m semconv.Metric, set attribute.Set, v float64) {
	c.floats[m.Name] = append(c.floats[m.Name], metricdata.DataPoint[float64]{
		Attributes: set, StartTime: c.start, Time: c.now, Value: v,
	})
}

// times adds the histograms of transfer times, if there are any.
func (c *collection) times(set attribute.Set, t *timesTotals) {
	if t.duration.count() > 0 {
		c.histogram(semconv.TransferDuration, set, &durationBounds, &t.duration)
		c.histogram(semconv.TransferPostDuration, set, &durationBounds, &t.post)
	}
}

func (c *collection) histogram(m semconv.Metric, set attribute.Set, b *bounds, d *distribution) {
	c.distribution(m, set, b, d, b.unit(d.sum))
}

func (c *collection) distribution(m semconv.Metric, set attribute.Set, b *bounds, d *distribution, sum float64) {
	counts := make([]uint64, len(b.out)+1)
	for i := range counts {
		counts[i] = uint64(d.counts[i])
	}
	p := metricdata.HistogramDataPoint[float64]{
		Attributes: set, StartTime: c.start, Time: c.now,
		Count: uint64(d.count()), Sum: sum,
		Min: metricdata.NewExtrema(b.unit(d.least())), Max: metricdata.NewExtrema(b.unit(d.rise)),
		Bounds: b.out, BucketCounts: counts,
	}
	for _, e := range d.exemplars {
		p.Exemplars = append(p.Exemplars, metricdata.Exemplar[float64]{
			Time: e.at, Value: b.unit(e.value), TraceID: e.trace[:], SpanID: e.span[:],
		})
	}
	c.histograms[m.Name] = append(c.histograms[m.Name], p)
}

// metrics returns the metrics that have points, in the order of the catalog.
func (c *collection) metrics() (all []metricdata.Metrics) {
	for _, m := range semconv.NIXL() {
		if data := c.data(m); data != nil {
			all = append(all, metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit, Data: data})
		}
	}
	return all
}

// data returns the points of a metric, or nil.
func (c *collection) data(m semconv.Metric) metricdata.Aggregation {
	ints, floats, histograms := c.ints[m.Name], c.floats[m.Name], c.histograms[m.Name]
	switch {
	case len(ints) > 0 && m.Kind == semconv.Gauge:
		return metricdata.Gauge[int64]{DataPoints: ints}
	case len(ints) > 0:
		return metricdata.Sum[int64]{
			DataPoints: ints, Temporality: metricdata.CumulativeTemporality, IsMonotonic: m.Kind == semconv.Counter,
		}
	case len(floats) > 0:
		return metricdata.Gauge[float64]{DataPoints: floats} // the catalog has no floating-point sums
	case len(histograms) > 0:
		return metricdata.Histogram[float64]{DataPoints: histograms, Temporality: metricdata.CumulativeTemporality}
	}
	return nil
}
