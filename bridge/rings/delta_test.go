// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rings

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// deltaExporter exports deltas to nowhere.
type deltaExporter struct{ sdkmetric.Exporter }

func (deltaExporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.DeltaTemporality
}

func (deltaExporter) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

func (deltaExporter) Export(context.Context, *metricdata.ResourceMetrics) error { return nil }

func (deltaExporter) Shutdown(context.Context) error { return nil }

// A delta begins where the one before ended, even if the clock is set back.
func TestDeltasHaveNoGaps(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir)
	w := newWorld(t, Config{Directories: []string{dir}})
	reader := w.Reader(deltaExporter{})
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	var end time.Time
	for _, offset := range []time.Duration{0, time.Hour, time.Minute} {
		push(t, ring, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
		w.ahead.Store(int64(offset))
		p := metrictest.Data[metricdata.Sum[int64]](t, metrictest.Collect(t, reader), semconv.Errors.Name).DataPoints[0]
		if !end.IsZero() && !p.StartTime.Equal(end) || p.StartTime.After(p.Time) {
			t.Errorf("a delta from %v to %v, after one that ends at %v", p.StartTime, p.Time, end)
		}
		end = p.Time
	}
	must.OK(t, provider.Shutdown(t.Context()))
}

func TestReaderIsSafeForConcurrentCollections(t *testing.T) {
	const series = "nixl.errors{error.type=backend,nixl.agent.name=a}"
	dir := t.TempDir()
	makeRing(t, dir, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	w := newWorld(t, Config{Directories: []string{dir}})
	reader := w.Reader(deltaExporter{})
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	var collections sync.WaitGroup
	var total atomic.Int64
	for range 4 {
		collections.Go(func() {
			for range 5 {
				total.Add(int64(metrictest.Values(metrictest.Collect(t, reader))[series]))
			}
		})
	}
	collections.Wait()
	if total.Load() != 1 {
		t.Errorf("the deltas add up to %d, want 1", total.Load())
	}
	must.OK(t, w.Close())
	metrictest.Collect(t, reader)
	if n := w.produce(t)[series]; n != 1 {
		t.Errorf("after Close, another reader gets %v, want 1", n)
	}
	must.OK(t, provider.Shutdown(t.Context()))
}
