// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// OpenTelemetry's SDK is an independent implementation.
func TestExponentialHistogramsEqualTheSDKs(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	fill := func(n int, value func() uint64) []uint64 {
		values := make([]uint64, n)
		for i := range values {
			values[i] = value()
		}
		return values
	}
	powers := make([]uint64, 64)
	for i := range powers {
		powers[i] = 1 << i
	}
	data := map[string][]uint64{
		"one value":       {12345},
		"the same twice":  {7, 7},
		"zeros":           {0, 0, 0},
		"zero and values": {0, 1, 0, 3},
		"powers of two":   powers,
		"falling":         {1 << 40, 1 << 30, 1 << 20, 1 << 10, 1},
		"the whole range": {1, math.MaxUint64},
		"transfer times":  fill(5000, func() uint64 { return uint64(50 + random.ExpFloat64()*3000) }),
		"sizes":           fill(5000, func() uint64 { return random.Uint64N(1 << (10 + random.IntN(20))) }),
		"everything":      fill(5000, func() uint64 { return random.Uint64() >> random.IntN(64) }),
		"close together":  fill(5000, func() uint64 { return 1_000_000 + random.Uint64N(100) }),
	}
	for name, values := range data {
		for _, maxSize := range []int{2, 3, 4, 5, 20, 100, 159, 160} {
			t.Run(fmt.Sprint(name, "/", maxSize), func(t *testing.T) {
				config := tally.HistogramConfig{Kind: tally.Exponential, MaxSize: maxSize}
				s := shape(t, tally.Config{Size: config, Duration: config})
				r := newRing(t, ringbuf.V4, 1024)
				agent := tally.NewAgent(s)
				r.feed(agent, transfersOf(values[:len(values)/2]...))
				agent = storeAndRestore(t, agent, s)
				r.feed(agent, transfersOf(values[len(values)/2:]...))
				for unit, h := range map[float64]*tally.Histogram{1: agent.Size(tally.Receive), 1e6: agent.Duration()} {
					if d := cmp.Diff(sdkHistogram(t, values, unit, maxSize), h.Buckets(), cmpopts.EquateEmpty()); d != "" {
						t.Errorf("%v per unit (-SDK +got)\n%s", unit, d)
					}
					if h.Count() != uint64(len(values)) {
						t.Errorf("count is %d, want %d", h.Count(), len(values))
					}
				}
			})
		}
	}
}

func sdkHistogram(t *testing.T, values []uint64, perUnit float64, maxSize int) tally.Buckets {
	t.Helper()
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(metric.NewView(
		metric.Instrument{Name: "*"},
		metric.Stream{Aggregation: metric.AggregationBase2ExponentialHistogram{MaxSize: int32(maxSize), MaxScale: 20}},
	)))
	h, err := provider.Meter("").Float64Histogram("h")
	must.OK(t, err)
	for _, v := range values {
		h.Record(context.Background(), float64(v)/perUnit)
	}
	var collected metricdata.ResourceMetrics
	must.OK(t, reader.Collect(context.Background(), &collected))
	data, ok := collected.ScopeMetrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64])
	if !ok {
		t.Fatalf("the SDK returned a %T", collected.ScopeMetrics[0].Metrics[0].Data)
	}
	point := data.DataPoints[0]
	return tally.Buckets{
		Scale: point.Scale, Zero: point.ZeroCount,
		Offset: point.PositiveBucket.Offset, Counts: point.PositiveBucket.Counts,
	}
}

// Bucket i is (base^(offset+i), base^(offset+i+1)].
func TestExponentialBucketsIncludeTheirUpperBound(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	for _, maxSize := range []int{2, 10, 160, 640, 4096} {
		for range 20 {
			config := tally.HistogramConfig{Kind: tally.Exponential, MaxSize: maxSize}
			agent := tally.NewAgent(shape(t, tally.Config{Size: config}))
			low := random.IntN(40)
			values := make([]uint64, 300)
			for i := range values {
				values[i] = 1<<low + random.Uint64N(1<<(low+random.IntN(20)))
			}
			newRing(t, ringbuf.V4, 1024).feed(agent, sizesOf(values...))
			b := agent.Size(tally.Receive).Buckets()
			if len(b.Counts) > maxSize {
				t.Errorf("%d buckets, want at most %d", len(b.Counts), maxSize)
			}
			want := make([]uint64, len(b.Counts))
			for _, v := range values {
				i := int(math.Ceil(math.Log2(float64(v))*math.Exp2(float64(b.Scale)))) - 1 - int(b.Offset)
				want[i]++
			}
			if d := cmp.Diff(want, b.Counts); d != "" {
				t.Errorf("max size %d, scale %d (-want +got)\n%s", maxSize, b.Scale, d)
			}
		}
	}
}
