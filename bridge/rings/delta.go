// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"context"
	"slices"
	"sync"

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

	mu       sync.Mutex                        // held during collections
	previous map[string]metricdata.Aggregation // the totals of the last collection, by metric
}

// Produce implements [sdkmetric.Producer].
func (d *deltas) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	scopes, err := d.producer.Produce(ctx)
	if err != nil || len(scopes) == 0 {
		return nil, err
	}
	next := make(map[string]metricdata.Aggregation)
	scopes = slices.Clone(scopes) // those of a closed Producer are shared
	scopes[0].Metrics = slices.Clone(scopes[0].Metrics)
	for i := range scopes[0].Metrics {
		m := &scopes[0].Metrics[i]
		next[m.Name] = m.Data
		m.Data = d.convert(d.previous[m.Name], m.Data)
	}
	d.previous = next
	return scopes, nil
}

// convert returns data with the temporality that the reader asks for. A delta begins where the
// one before ended.
func (d *deltas) convert(previous, data metricdata.Aggregation) metricdata.Aggregation {
	switch now := data.(type) {
	case metricdata.Sum[int64]:
		if now.IsMonotonic && d.temporality(sdkmetric.InstrumentKindObservableCounter) == metricdata.DeltaTemporality {
			before, _ := previous.(metricdata.Sum[int64])
			now.Temporality, now.DataPoints = metricdata.DeltaTemporality, added(before.DataPoints, now.DataPoints,
				func(p *metricdata.DataPoint[int64]) series {
					return series{p.Attributes.Equivalent(), p.StartTime.UnixNano()}
				},
				func(p, old *metricdata.DataPoint[int64]) { p.StartTime, p.Value = old.Time, p.Value-old.Value })
			return now
		}
	case metricdata.Histogram[float64]:
		if d.temporality(sdkmetric.InstrumentKindHistogram) == metricdata.DeltaTemporality {
			before, _ := previous.(metricdata.Histogram[float64])
			now.Temporality, now.DataPoints = metricdata.DeltaTemporality, added(before.DataPoints, now.DataPoints,
				func(p *metricdata.HistogramDataPoint[float64]) series {
					return series{p.Attributes.Equivalent(), p.StartTime.UnixNano()}
				},
				subtract)
			for i := range now.DataPoints { // the minimum and maximum of a delta are unknown
				now.DataPoints[i].Min, now.DataPoints[i].Max = metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
			}
			return now
		}
	}
	return data
}

// series identifies a series since it started.
type series struct {
	attributes attribute.Distinct
	start      int64
}

// added returns what was added to each point since previous, or all of it if the point is
// new or started again.
func added[P any](previous, now []P, of func(*P) series, subtract func(p, old *P)) []P {
	before := make(map[series]*P)
	for i := range previous {
		before[of(&previous[i])] = &previous[i]
	}
	now = slices.Clone(now)
	for i := range now {
		if old := before[of(&now[i])]; old != nil {
			subtract(&now[i], old)
		}
	}
	return now
}

func subtract(p, old *metricdata.HistogramDataPoint[float64]) {
	if p.StartTime = old.Time; !slices.Equal(p.Bounds, old.Bounds) { // it started at zero again
		return
	}
	p.Count, p.Sum = p.Count-old.Count, p.Sum-old.Sum
	p.BucketCounts = slices.Clone(p.BucketCounts)
	for b, n := range old.BucketCounts {
		p.BucketCounts[b] -= n
	}
}
