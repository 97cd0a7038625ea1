// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestDeltasStartAtThePreviousCollection(t *testing.T) {
	const k = "ringkernel.kernel.id=k"
	for name, opts := range map[string][]ringkernel.ProducerOption{
		"explicit buckets":    {ringkernel.WithDeltaTemporality()},
		"exponential buckets": {ringkernel.WithDeltaTemporality(), ringkernel.WithExponentialHistogram()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			reader := newReader(w.Runtime, opts...)
			began := start
			for i, uses := range []int{2, 0, 3} {
				for range uses {
					use(t, w, "k")
				}
				w.clock.Advance(time.Second)
				if i == 2 {
					w.Unregister("k") // it is still reported
				}
				ms := collect(t, reader)
				got := metrictest.Values(ms)
				for series, perUse := range map[string]int{
					"ringkernel.messages.received{" + k + "}":                            2,
					"ringkernel.messages.sent{" + k + "}":                                1,
					"ringkernel.messages.processed{" + k + "}":                           2,
					"ringkernel.message.duration{" + k + "}":                             2,
					"ringkernel.messages.dropped{" + k + ",ringkernel.queue.name=input}": 1,
					"ringkernel.errors{error.type=timeout," + k + "}":                    1,
				} {
					if got[series] != float64(perUse*uses) {
						t.Errorf("collection %d: %s = %v, want %d", i, series, got[series], perUse*uses)
					}
				}
				sum := metrictest.Data[metricdata.Sum[int64]](t, ms, "ringkernel.messages.sent")
				if p := sum.DataPoints[0]; sum.Temporality != metricdata.DeltaTemporality || !p.StartTime.Equal(began) {
					t.Errorf("collection %d: %v since %v, want deltas since %v", i, sum.Temporality, p.StartTime, began)
				}
				if i < 2 {
					status := metrictest.Data[metricdata.Sum[int64]](t, ms, "ringkernel.kernel.status")
					if status.Temporality != metricdata.CumulativeTemporality {
						t.Errorf("collection %d: ringkernel.kernel.status is %v", i, status.Temporality)
					}
				}
				began = w.clock.Now()
			}
		})
	}
}

func TestDeltaHistogramHasNoExtremes(t *testing.T) {
	w := newWorld(t)
	reader := newReader(w.Runtime, ringkernel.WithDeltaTemporality())
	k := w.Register("k")
	k.Processed(t.Context(), time.Second)
	k.Processed(t.Context(), 150*time.Nanosecond)
	collect(t, reader)
	k.Processed(t.Context(), 150*time.Nanosecond)
	p := metrictest.Data[metricdata.Histogram[float64]](t, collect(t, reader), "ringkernel.message.duration").DataPoints[0]
	_, known := p.Min.Value()
	if p.Count != 1 || p.Sum != 150e-9 || p.BucketCounts[1] != 1 || known {
		t.Errorf("the second collection has %+v, want one latency of 150 ns", p)
	}
}
