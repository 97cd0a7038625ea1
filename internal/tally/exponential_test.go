// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

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

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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
		"next to powers":  fill(300, func() uint64 { return 1<<random.IntN(40) + random.Uint64N(3) }),
		"falling":         {1 << 40, 1 << 30, 1 << 20, 1 << 10, 1},
		"the whole range": {1, math.MaxUint64},
		"transfer times":  fill(5000, func() uint64 { return uint64(50 + random.ExpFloat64()*3000) }),
		"sizes":           fill(5000, func() uint64 { return random.Uint64N(1 << (10 + random.IntN(20))) }),
		"everything":      fill(5000, func() uint64 { return random.Uint64() >> random.IntN(64) }),
		"close together":  fill(5000, func() uint64 { return 1_000_000 + random.Uint64N(100) }),
	}
	for name, values := range data {
		for _, maxSize := range []int{2, 3, 4, 5, 20, 100, 160, 4096} {
			t.Run(fmt.Sprint(name, "/", maxSize), func(t *testing.T) {
				config := HistogramConfig{Kind: Exponential, MaxSize: maxSize}
				s := shapeOf(t, Config{Size: config, Duration: config})
				agent := NewAgent(s)
				feed(t, agent, ringbuf.V4, transfersOf(values[:len(values)/2]...))
				agent = storeAndRestore(t, agent, s)
				feed(t, agent, ringbuf.V4, transfersOf(values[len(values)/2:]...))
				for unit, h := range map[float64]*Histogram{1: agent.Size(Receive), 1e6: agent.Duration()} {
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

func sdkHistogram(t *testing.T, values []uint64, perUnit float64, maxSize int) Buckets {
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
	return Buckets{
		Scale: point.Scale, Zero: point.ZeroCount,
		Offset: point.PositiveBucket.Offset, Counts: point.PositiveBucket.Counts,
	}
}
