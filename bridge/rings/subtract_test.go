// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
)

type (
	number   = metricdata.DataPoint[int64]
	explicit = metricdata.HistogramDataPoint[float64]
)

var (
	agentA = attribute.NewSet(attribute.String("agent", "a"))
	agentB = attribute.NewSet(attribute.String("agent", "b"))
)

// at returns the time of a second.
func at(second int64) time.Time { return time.Unix(second, 0) }

func counter(of metricdata.Temporality, points ...number) metricdata.Aggregation {
	return metricdata.Sum[int64]{DataPoints: points, Temporality: of, IsMonotonic: true}
}

func histogram(of metricdata.Temporality, points ...explicit) metricdata.Aggregation {
	return metricdata.Histogram[float64]{DataPoints: points, Temporality: of}
}

// A delta is what was added since the previous collection, or all of it if the series is new
// or started again.
func TestDeltaIsTheDifferenceToThePreviousCollection(t *testing.T) {
	const cumulative, delta = metricdata.CumulativeTemporality, metricdata.DeltaTemporality
	bounds, extrema := []float64{1, 2}, metricdata.NewExtrema(3.0)
	upDown := metricdata.Sum[int64]{DataPoints: []number{{Attributes: agentA, StartTime: at(1), Time: at(3), Value: 8}}, Temporality: cumulative}
	for name, tt := range map[string]struct{ previous, now, want metricdata.Aggregation }{
		"no previous collection": {
			nil,
			counter(cumulative, number{Attributes: agentA, StartTime: at(1), Time: at(2), Value: 5}),
			counter(delta, number{Attributes: agentA, StartTime: at(1), Time: at(2), Value: 5}),
		},
		"counters": {
			counter(cumulative, number{Attributes: agentA, StartTime: at(1), Time: at(2), Value: 5}, number{Attributes: agentB, StartTime: at(1), Time: at(2), Value: 9}),
			counter(cumulative, number{Attributes: agentB, StartTime: at(1), Time: at(3), Value: 10}, number{Attributes: agentA, StartTime: at(1), Time: at(3), Value: 5}),
			counter(delta, number{Attributes: agentB, StartTime: at(2), Time: at(3), Value: 1}, number{Attributes: agentA, StartTime: at(2), Time: at(3)}),
		},
		"a series that started again": {
			counter(cumulative, number{Attributes: agentA, StartTime: at(1), Time: at(2), Value: 5}),
			counter(cumulative, number{Attributes: agentA, StartTime: at(2), Time: at(3), Value: 3}),
			counter(delta, number{Attributes: agentA, StartTime: at(2), Time: at(3), Value: 3}),
		},
		"an up-down counter": {upDown, upDown, upDown},
		"a histogram": {
			histogram(cumulative, explicit{Attributes: agentA, StartTime: at(1), Time: at(2), Count: 3, Sum: 6, Bounds: bounds, BucketCounts: []uint64{1, 2, 0}}),
			histogram(cumulative, explicit{Attributes: agentA, StartTime: at(1), Time: at(3), Count: 5, Sum: 9, Bounds: bounds, BucketCounts: []uint64{1, 3, 1}, Max: extrema}),
			histogram(delta, explicit{Attributes: agentA, StartTime: at(2), Time: at(3), Count: 2, Sum: 3, Bounds: bounds, BucketCounts: []uint64{0, 1, 1}}),
		},
		"a histogram with other bounds": {
			histogram(cumulative, explicit{Attributes: agentA, StartTime: at(1), Time: at(2), Count: 3, Sum: 6, Bounds: []float64{1}, BucketCounts: []uint64{1, 2}}),
			histogram(cumulative, explicit{Attributes: agentA, StartTime: at(1), Time: at(3), Count: 1, Sum: 2, Bounds: bounds, BucketCounts: []uint64{0, 1, 0}}),
			histogram(delta, explicit{Attributes: agentA, StartTime: at(2), Time: at(3), Count: 1, Sum: 2, Bounds: bounds, BucketCounts: []uint64{0, 1, 0}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := deltas{temporality: func(sdkmetric.InstrumentKind) metricdata.Temporality { return delta }}
			for range 2 { // a conversion doesn't change the totals, which others may have
				metricdatatest.AssertAggregationsEqual(t, tt.want, d.convert(tt.previous, tt.now))
			}
			d.temporality = sdkmetric.DefaultTemporalitySelector
			metricdatatest.AssertAggregationsEqual(t, tt.now, d.convert(tt.previous, tt.now))
		})
	}
}
