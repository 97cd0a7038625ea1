// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The SDK's exponential histogram has the same scale, offset and buckets for the same
// durations.
func TestPointEqualsThatOfTheSDK(t *testing.T) {
	for _, tt := range []struct {
		name string
		ns   func(*rand.Rand) int64
	}{
		{"within an octave", func(r *rand.Rand) int64 { return 600_000 + r.Int64N(300_000) }},
		{"microseconds", func(r *rand.Rand) int64 { return r.Int64N(100_000) }},
		{"from 1 ns to 18 min", func(r *rand.Rand) int64 { return r.Int64N(1 << r.IntN(41)) }},
		{"long tail", func(r *rand.Rand) int64 { return int64(50_000 * r.ExpFloat64()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reader := metric.NewManualReader()
			provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(metric.NewView(
				metric.Instrument{Name: "duration"},
				metric.Stream{Aggregation: metric.AggregationBase2ExponentialHistogram{
					MaxSize: MaxSize, MaxScale: MaxScale,
				}},
			)))
			sdk, err := provider.Meter("test").Float64Histogram("duration")
			if err != nil {
				t.Fatal(err)
			}
			var h Histogram
			r := rand.New(rand.NewPCG(5, 6))
			for range 5000 {
				ns := tt.ns(r)
				h.Record(ns)
				sdk.Record(context.Background(), float64(ns)/1e9)
			}
			var s Sum
			s.Add(&h)
			if d := cmp.Diff(collect(t, reader), s.Point(), cmpopts.EquateApprox(1e-12, 0)); d != "" {
				t.Errorf("the SDK's point differs (-SDK +expo):\n%s", d)
			}
		})
	}
}

func collect(t *testing.T, reader metric.Reader) Point {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	histogram, ok := rm.ScopeMetrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64])
	if !ok {
		t.Fatalf("the SDK has a %T", rm.ScopeMetrics[0].Metrics[0].Data)
	}
	dp := histogram.DataPoints[0]
	p := Point{
		Count: dp.Count, Zeros: dp.ZeroCount, Sum: dp.Sum, Scale: dp.Scale,
		Offset: dp.PositiveBucket.Offset, Counts: dp.PositiveBucket.Counts,
	}
	p.Min, _ = dp.Min.Value()
	p.Max, _ = dp.Max.Value()
	return p
}
