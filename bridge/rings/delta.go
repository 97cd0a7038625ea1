// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Reader returns a periodic reader of the Producer's metrics, and of those of the
// MeterProvider that it is passed to. Counters and histograms have the temporality that
// the exporter selects; up-down counters are always cumulative. What a reader has
// collected doesn't affect the counters and histograms of other readers.
func (p *Producer) Reader(e sdkmetric.Exporter, opts ...sdkmetric.PeriodicReaderOption) *sdkmetric.PeriodicReader {
	own := &deltas{producer: p, temporality: e.Temporality}
	return sdkmetric.NewPeriodicReader(e, append(slices.Clip(opts), sdkmetric.WithProducer(own))...)
}

// deltas is the Producer of one reader. It converts totals to what was added since the
// reader's last collection, if the reader asks for it.
type deltas struct {
	producer    *Producer
	temporality sdkmetric.TemporalitySelector
	previous    map[string]metricdata.Aggregation // the totals of the last collection
}

// Produce implements [sdkmetric.Producer]. Readers don't collect concurrently.
func (d *deltas) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	scopes, err := d.producer.Produce(ctx)
	if err != nil || len(scopes) == 0 {
		return nil, err
	}
	next := make(map[string]metricdata.Aggregation)
	scopes = slices.Clone(scopes) // those of a closed Producer are shared
	scopes[0].Metrics = slices.Clone(scopes[0].Metrics)
	for i := range scopes[0].Metrics {
		m := &scopes[0].Metrics[i]
		key := fmt.Sprintf("%s %T", m.Name, m.Data) // rings and stores can have different histograms
		next[key] = m.Data
		m.Data = d.convert(d.previous[key], m.Data)
	}
	d.previous = next
	return scopes, nil
}

// convert returns data with the temporality that the reader asks for.
func (d *deltas) convert(previous, data metricdata.Aggregation) metricdata.Aggregation {
	counters := d.temporality(sdkmetric.InstrumentKindObservableCounter) == metricdata.DeltaTemporality
	histograms := d.temporality(sdkmetric.InstrumentKindHistogram) == metricdata.DeltaTemporality
	switch now := data.(type) {
	case metricdata.Sum[int64]:
		if counters && now.IsMonotonic {
			before, _ := previous.(metricdata.Sum[int64])
			return deltaSum(before, now)
		}
	case metricdata.Histogram[float64]:
		if histograms {
			before, _ := previous.(metricdata.Histogram[float64])
			return deltaHistogram(before, now)
		}
	case metricdata.ExponentialHistogram[float64]:
		if histograms {
			before, _ := previous.(metricdata.ExponentialHistogram[float64])
			return deltaExponential(before, now)
		}
	}
	return data
}

// The following functions return what was added to each point since previous, or all of it
// if the point is new or started again. A delta begins where the one before ended. Its
// minimum and maximum are unknown.

func deltaSum(previous, now metricdata.Sum[int64]) metricdata.Sum[int64] {
	type point = metricdata.DataPoint[int64]
	now.Temporality = metricdata.DeltaTemporality
	now.DataPoints = each(previous.DataPoints, now.DataPoints, func(p *point) (attribute.Set, time.Time) { return p.Attributes, p.StartTime },
		func(old, p *point) {
			if old != nil {
				p.StartTime, p.Value = old.Time, p.Value-old.Value
			}
		})
	return now
}

func deltaHistogram(previous, now metricdata.Histogram[float64]) metricdata.Histogram[float64] {
	type point = metricdata.HistogramDataPoint[float64]
	now.Temporality = metricdata.DeltaTemporality
	now.DataPoints = each(previous.DataPoints, now.DataPoints, func(p *point) (attribute.Set, time.Time) { return p.Attributes, p.StartTime },
		func(old, p *point) {
			p.Min, p.Max = metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
			if old == nil {
				return
			}
			if p.StartTime = old.Time; !slices.Equal(p.Bounds, old.Bounds) { // it started at zero again
				return
			}
			p.Count, p.Sum = p.Count-old.Count, p.Sum-old.Sum
			p.BucketCounts = slices.Clone(p.BucketCounts)
			for b, n := range old.BucketCounts {
				p.BucketCounts[b] -= n
			}
		})
	return now
}

func deltaExponential(previous, now metricdata.ExponentialHistogram[float64]) metricdata.ExponentialHistogram[float64] {
	type point = metricdata.ExponentialHistogramDataPoint[float64]
	now.Temporality = metricdata.DeltaTemporality
	now.DataPoints = each(previous.DataPoints, now.DataPoints, func(p *point) (attribute.Set, time.Time) { return p.Attributes, p.StartTime },
		func(old, p *point) {
			p.Min, p.Max = metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
			if old == nil {
				return
			}
			p.StartTime, p.Count, p.Sum, p.ZeroCount = old.Time, p.Count-old.Count, p.Sum-old.Sum, p.ZeroCount-old.ZeroCount
			buckets := &p.PositiveBucket
			buckets.Counts = slices.Clone(buckets.Counts)
			for b, n := range old.PositiveBucket.Counts { // a scale that is smaller by 1 merges pairs of buckets
				buckets.Counts[(old.PositiveBucket.Offset+int32(b))>>(old.Scale-p.Scale)-buckets.Offset] -= n
			}
		})
	return now
}

// each returns a copy of points that subtract has changed, with the previous point of the same attributes and start
// time, which identify returns, or nil.
func each[P any](previous, points []P, identify func(*P) (attribute.Set, time.Time), subtract func(old, p *P)) []P {
	type identity struct {
		attributes attribute.Distinct
		start      int64
	}
	of := func(p *P) identity {
		set, start := identify(p)
		return identity{set.Equivalent(), start.UnixNano()}
	}
	before := make(map[identity]*P)
	for i := range previous {
		before[of(&previous[i])] = &previous[i]
	}
	points = slices.Clone(points)
	for i := range points {
		subtract(before[of(&points[i])], &points[i])
	}
	return points
}
