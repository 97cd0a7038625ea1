// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package metrictest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// SDK holds instruments of the SDK with a precomputed attribute set, for comparison.
type SDK struct {
	counter   metric.Int64Counter
	histogram metric.Float64Histogram
	add       []metric.AddOption
	record    []metric.RecordOption
}

// NewSDK returns the instruments of a new MeterProvider.
func NewSDK(b *testing.B) SDK {
	b.Helper()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("bench")
	counter, err := meter.Int64Counter("counter")
	if err != nil {
		b.Fatal(err)
	}
	histogram, err := meter.Float64Histogram("histogram",
		metric.WithExplicitBucketBoundaries(semconv.DurationBounds()...))
	if err != nil {
		b.Fatal(err)
	}
	set := metric.WithAttributeSet(attribute.NewSet(attribute.String(semconv.KernelID, "bench")))
	return SDK{counter, histogram, []metric.AddOption{set}, []metric.RecordOption{set}}
}

// Add adds 1 to the counter.
func (s SDK) Add() { s.counter.Add(context.Background(), 1, s.add...) }

// Record records a duration in the histogram.
func (s SDK) Record(d time.Duration) {
	s.histogram.Record(context.Background(), d.Seconds(), s.record...)
}

// Interleave alternately runs batches of each function, and returns the median time per
// call of each function, in ns.
func Interleave(b *testing.B, batch int, fs ...func(int)) []float64 {
	b.Helper()
	return InterleaveParallel(b, 1, batch, fs...)
}

// InterleaveParallel is like Interleave, but runs each batch in several goroutines at a
// time. The time per call includes the time that goroutines wait for a processor.
func InterleaveParallel(b *testing.B, goroutines, batch int, fs ...func(int)) []float64 {
	b.Helper()
	times := make([][]float64, len(fs))
	for b.Loop() {
		for j, f := range fs {
			took := timeBatches(goroutines, batch, f)
			times[j] = append(times[j], float64(took)/float64(batch))
		}
	}
	medians := make([]float64, len(fs))
	for j := range times {
		medians[j] = Median(times[j])
	}
	return medians
}

// Median sorts the values and returns their median.
func Median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// timeBatches returns the time from the first call to the end of the last goroutine.
func timeBatches(goroutines, batch int, f func(int)) time.Duration {
	run := func() {
		for i := range batch {
			f(i)
		}
	}
	if goroutines == 1 {
		start := time.Now()
		run()
		return time.Since(start)
	}
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(goroutines)
	for range goroutines {
		done.Go(func() {
			ready.Done()
			<-begin
			run()
		})
	}
	ready.Wait()
	start := time.Now()
	close(begin)
	done.Wait()
	return time.Since(start)
}
