// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Reader returns a periodic reader of the Producer's metrics, and of those of the
// MeterProvider that it is passed to. Counters and histograms have the temporality that
// the exporter selects; up-down counters are always cumulative. What a reader has
// collected doesn't affect other readers.
func (p *Producer) Reader(e sdkmetric.Exporter, opts ...sdkmetric.PeriodicReaderOption) *sdkmetric.PeriodicReader {
	own := &deltas{producer: p, temporality: e.Temporality}
	p.mu.Lock()
	p.readers = append(p.readers, own)
	p.mu.Unlock()
	return sdkmetric.NewPeriodicReader(e, append(slices.Clip(opts), sdkmetric.WithProducer(own))...)
}

// deltas is the Producer of one reader. It converts totals to what was added since the
// reader's last collection, if the reader asks for it.
type deltas struct {
	producer    *Producer
	temporality sdkmetric.TemporalitySelector
	previous    map[series]cumulative          // of the last collection
	highest     map[attribute.Distinct]float64 // ring utilization since the last collection; guarded by the Producer's lock
}

// series identifies a series of a metric.
type series struct {
	metric     string
	attributes attribute.Distinct
}

// cumulative is the state of a series at a collection.
type cumulative struct {
	start, at time.Time
	value
}

// value is the value of a counter or of a histogram. Explicit buckets are those of scale 0
// and offset 0.
type value struct {
	number        int64
	count, zero   uint64
	sum           float64
	bounds        []float64
	scale, offset int32
	buckets       []uint64
}

// Produce implements [sdkmetric.Producer]. Readers don't collect concurrently.
func (d *deltas) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	scopes, err := d.producer.Produce(ctx)
	if err != nil || len(scopes) == 0 {
		return nil, err
	}
	d.producer.mu.Lock()
	highest := d.highest
	d.highest = nil
	d.producer.mu.Unlock()
	next := make(map[series]cumulative)
	scopes = slices.Clone(scopes) // those of a closed Producer are shared
	scopes[0].Metrics = slices.Clone(scopes[0].Metrics)
	for i := range scopes[0].Metrics {
		d.convert(&scopes[0].Metrics[i], next, highest)
	}
	d.previous = next
	return scopes, nil
}

// utilization returns the points of the ring utilization.
func utilization(m *metricdata.Metrics) []metricdata.DataPoint[float64] {
	if data, ok := m.Data.(metricdata.Gauge[float64]); ok && m.Name == semconv.RingUtilization.Name {
		return data.DataPoints
	}
	return nil
}

// collected takes note of any reader's collection.
func (d *deltas) collected(ms []metricdata.Metrics) {
	highest := make(map[attribute.Distinct]float64) // without the agents that are gone
	for i := range ms {
		for _, p := range utilization(&ms[i]) {
			key := p.Attributes.Equivalent()
			highest[key] = max(d.highest[key], p.Value)
		}
	}
	d.highest = highest
}

func (d *deltas) convert(m *metricdata.Metrics, next map[series]cumulative, highest map[attribute.Distinct]float64) {
	if points := slices.Clone(utilization(m)); points != nil {
		for i := range points {
			points[i].Value = max(points[i].Value, highest[points[i].Attributes.Equivalent()])
		}
		m.Data = metricdata.Gauge[float64]{DataPoints: points}
	}
	const delta = metricdata.DeltaTemporality
	counters := d.temporality(sdkmetric.InstrumentKindObservableCounter) == delta
	histograms := d.temporality(sdkmetric.InstrumentKindHistogram) == delta
	var unknown metricdata.Extrema[float64] // minimum and maximum are those of all values
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if !data.IsMonotonic || !counters {
			return
		}
		data.DataPoints, data.Temporality = slices.Clone(data.DataPoints), delta
		for i := range data.DataPoints {
			p := &data.DataPoints[i]
			key := series{m.Name, p.Attributes.Equivalent()}
			p.Value = d.since(key, &p.StartTime, &p.Time, next, value{number: p.Value}).number
		}
		m.Data = data
	case metricdata.Histogram[float64]:
		if !histograms {
			return
		}
		data.DataPoints, data.Temporality = slices.Clone(data.DataPoints), delta
		for i := range data.DataPoints {
			p := &data.DataPoints[i]
			key := series{m.Name, p.Attributes.Equivalent()}
			v := d.since(key, &p.StartTime, &p.Time, next, value{count: p.Count, sum: p.Sum, bounds: p.Bounds, buckets: p.BucketCounts})
			p.Count, p.Sum, p.BucketCounts, p.Min, p.Max = v.count, v.sum, v.buckets, unknown, unknown
		}
		m.Data = data
	case metricdata.ExponentialHistogram[float64]:
		if !histograms {
			return
		}
		data.DataPoints, data.Temporality = slices.Clone(data.DataPoints), delta
		for i := range data.DataPoints {
			p := &data.DataPoints[i]
			key, b := series{m.Name, p.Attributes.Equivalent()}, &p.PositiveBucket
			v := d.since(key, &p.StartTime, &p.Time, next, value{
				count: p.Count, zero: p.ZeroCount, sum: p.Sum, scale: p.Scale, offset: b.Offset, buckets: b.Counts,
			})
			p.Count, p.ZeroCount, p.Sum, b.Counts, p.Min, p.Max = v.count, v.zero, v.sum, v.buckets, unknown, unknown
		}
		m.Data = data
	}
}

// since remembers the value of a series, and returns what was added since the previous
// collection, or since the start if the series is new or was reset. It sets the times of
// the point. A point doesn't end before the previous one, even if the clock is set back.
func (d *deltas) since(key series, start, at *time.Time, next map[series]cumulative, v value) value {
	before, ok := d.previous[key]
	if !ok || !before.start.Equal(*start) {
		before = cumulative{at: *start}
	}
	if at.Before(before.at) {
		*at = before.at
	}
	next[key] = cumulative{*start, *at, v}
	*start = before.at
	return v.minus(before.value)
}

// minus returns what was added to an older value. If the bounds of a histogram have
// changed, it started at zero again.
func (v value) minus(old value) value {
	if !slices.Equal(v.bounds, old.bounds) {
		return v
	}
	v.number, v.count, v.zero, v.sum = v.number-old.number, v.count-old.count, v.zero-old.zero, v.sum-old.sum
	v.buckets = slices.Clone(v.buckets)
	for b, n := range old.buckets { // a scale that is smaller by 1 merges pairs of buckets
		v.buckets[(old.offset+int32(b))>>(old.scale-v.scale)-v.offset] -= n
	}
	return v
}
