// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// The benchmarks measure the SDK in the same run, because the load of the machine
// may differ between runs:
//
//	go test -run '^$' -bench . ./bridge/ringkernel

// benchKernel returns a kernel of a Runtime with a reader: the default setup.
func benchKernel(opts ...ringkernel.Option) *ringkernel.Kernel {
	rt := ringkernel.NewRuntime(opts...)
	newReader(rt)
	return rt.Register("bench")
}

// latency returns different values, to vary buckets and branches.
func latency(i int) time.Duration { return time.Duration(500 + i*37&0xffff) }

// BenchmarkGoroutines measures how many times cheaper the calls are than those of
// the SDK's instruments, with several goroutines calling one kernel.
func BenchmarkGoroutines(b *testing.B) {
	own := metrictest.NewSDK(b)
	k := benchKernel()
	var off *ringkernel.Kernel
	ctx := context.Background()
	add := func(int) { own.Add() }
	for _, c := range []struct {
		name      string
		sdk, ours func(int)
	}{
		{"Received", add, func(int) { k.Received(ctx) }},
		{"Sent", add, func(int) { k.Sent(ctx) }},
		{"Dropped", add, func(int) { k.Dropped(ctx, ringkernel.InputQueue) }},
		{"Off", add, func(int) { off.Received(ctx) }},
		{"Processed", func(i int) { own.Record(latency(i)) }, func(i int) { k.Processed(ctx, latency(i)) }},
	} {
		for _, goroutines := range []int{1, 2, 16} {
			b.Run(fmt.Sprintf("%s/%d", c.name, goroutines), func(b *testing.B) {
				t := metrictest.InterleaveParallel(b, goroutines, 5000, c.sdk, c.ours)
				b.ReportMetric(t[0], "SDK-ns")
				b.ReportMetric(t[1], "ns")
				b.ReportMetric(t[0]/t[1], "times-cheaper")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkContext measures calls with different contexts: with values, without a
// span, with an unsampled span, and with a sampled span.
func BenchmarkContext(b *testing.B) {
	k := benchKernel()
	type key struct{}
	values := context.WithValue(context.WithValue(context.WithValue(context.Background(), key{}, 1), key{}, 2), key{}, 3)
	for name, ctx := range map[string]context.Context{
		"background": context.Background(), "3 values": values,
		"unsampled": spanContext(context.Background(), 1, false), "sampled": spanContext(context.Background(), 1, true),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.Sent(ctx)
			}
		})
	}
}

// BenchmarkExactTimes measures Received with WithClock, which reads the clock for
// every message.
func BenchmarkExactTimes(b *testing.B) {
	k, ctx := benchKernel(ringkernel.WithClock(time.Now)), context.Background()
	for b.Loop() {
		k.Received(ctx)
	}
}

// BenchmarkDisabled measures a call of a nil Kernel.
func BenchmarkDisabled(b *testing.B) {
	var rt *ringkernel.Runtime
	k, ctx := rt.Register("bench"), context.Background()
	b.Run("Received", func(b *testing.B) {
		for b.Loop() {
			k.Received(ctx)
		}
	})
	b.Run("Processed", func(b *testing.B) {
		for b.Loop() {
			k.Processed(ctx, time.Microsecond)
		}
	})
}

// BenchmarkLoop measures how much longer a loop with 1 µs of work per message takes
// with telemetry than without, and for comparison with four atomic additions only.
// It doesn't include measuring the latency.
func BenchmarkLoop(b *testing.B) {
	work, ctx := microsecond(), context.Background()
	loop := func(k *ringkernel.Kernel) func(int) {
		return func(i int) {
			k.Received(ctx)
			work()
			k.Processed(ctx, latency(i))
			k.Sent(ctx)
		}
	}
	var words [4]struct {
		atomic.Int64
		_ [64]byte
	}
	least := func(int) {
		words[0].Add(1)
		work()
		words[1].Add(1)
		words[2].Add(1)
		words[3].Add(1)
	}
	t := metrictest.Interleave(b, 500, loop(nil), loop(benchKernel()), least)
	b.ReportMetric(t[0], "off-ns")
	b.ReportMetric(t[1], "on-ns")
	b.ReportMetric(100*(t[1]/t[0]-1), "%-slower")
	b.ReportMetric(100*(t[2]/t[0]-1), "%-slower-atomics")
	b.ReportMetric(0, "ns/op")
}

var spent uint64

// microsecond returns a function that computes for one microsecond.
func microsecond() func() {
	spin := func(n int) {
		x := spent | 1
		for range n {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		spent = x
	}
	const trial = 1000
	best := time.Hour
	for range 200 {
		start := time.Now()
		spin(trial)
		best = min(best, time.Since(start))
	}
	n := int(trial * time.Microsecond / best)
	return func() { spin(n) }
}

// BenchmarkRegister measures the time to register 10,000 kernels, per kernel, and
// its ratio to that for 1,000 kernels, which is 1 if the time is linear.
func BenchmarkRegister(b *testing.B) {
	register := func(n int) float64 {
		rt := ringkernel.NewRuntime()
		newReader(rt)
		start := time.Now()
		for i := range n {
			rt.Register(kernelID(i))
		}
		return float64(time.Since(start)) / float64(n)
	}
	var few, many []float64
	for b.Loop() {
		few = append(few, register(1000))
		many = append(many, register(10_000))
	}
	b.ReportMetric(metrictest.Median(many), "ns/kernel")
	b.ReportMetric(metrictest.Median(many)/metrictest.Median(few), "x-of-1000")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory measures the memory of 10,000 kernels that count, and how much of
// it is left after they were unregistered and collected.
func BenchmarkMemory(b *testing.B) {
	const kernels = 10_000
	rt := ringkernel.NewRuntime()
	reader := newReader(rt)
	rt.Register("stays").Processed(context.Background(), 1)
	cycle := func() (used, left float64) {
		before := heap(b, reader)
		for i := range kernels {
			k := rt.Register(kernelID(i))
			k.Received(context.Background())
			k.Processed(context.Background(), latency(i))
		}
		used = heap(b, reader) - before
		for i := range kernels {
			rt.Unregister(kernelID(i))
		}
		return used / kernels, 100 * (heap(b, reader)/before - 1)
	}
	cycle() // allocates what the process needs once
	var used, left []float64
	for b.Loop() {
		u, l := cycle()
		used, left = append(used, u), append(left, l)
	}
	b.ReportMetric(metrictest.Median(used)/1e3, "kB/kernel")
	b.ReportMetric(metrictest.Median(left), "%-left")
	b.ReportMetric(0, "ns/op")
}

func kernelID(i int) string { return fmt.Sprintf("kernel-%d", i) }

// heap returns the memory in use after two collections by the reader.
func heap(b *testing.B, reader sdkmetric.Reader) float64 {
	b.Helper()
	for range 2 {
		var rm metricdata.ResourceMetrics
		if err := reader.Collect(b.Context(), &rm); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkCollect measures a collection of 1,000 kernels with latencies.
func BenchmarkCollect(b *testing.B) {
	rt := ringkernel.NewRuntime()
	reader := newReader(rt)
	for i := range 1000 {
		k := rt.Register(kernelID(i))
		for j := range 100 {
			k.Processed(context.Background(), latency(j))
		}
	}
	for b.Loop() {
		var rm metricdata.ResourceMetrics
		if err := reader.Collect(b.Context(), &rm); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/1000, "ns/kernel")
}
