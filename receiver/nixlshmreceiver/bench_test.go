// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package nixlshmreceiver

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// BenchmarkCollect compares a collection of agents that report every metric with
// building the same points again. The ratio is the cost of converting totals.
func BenchmarkCollect(b *testing.B) {
	for _, n := range []int{64, 1024} {
		b.Run(fmt.Sprintf("agents=%d", n), func(b *testing.B) {
			var last pmetric.Metrics
			r := busyReceiver(b, n, func(_ context.Context, m pmetric.Metrics) error {
				last = m
				return nil
			})
			collect := func() {
				must.OK(b, r.collect(b.Context(), false))
			}
			collect()
			points := last.DataPointCount()
			if got := rebuilt(last).DataPointCount(); got != points {
				b.Fatalf("%d points are built, want %d", got, points)
			}
			var took, reference []time.Duration
			var allocated, reserved uint64
			for b.Loop() {
				d, allocs := measured(collect)
				took, allocated = append(took, d), allocated+allocs
				d, allocs = measured(func() { last = rebuilt(last) })
				reference, reserved = append(reference, d), reserved+allocs
			}
			b.ReportMetric(median(took)/median(reference), "x-plain")
			b.ReportMetric(median(took)/float64(points), "ns/point")
			b.ReportMetric(float64(allocated)/float64(b.N*n), "allocs/agent")
			b.ReportMetric(float64(reserved)/float64(b.N*n), "plain-allocs/agent")
			b.ReportMetric(float64(points)/float64(n), "points/agent")
		})
	}
}

// measured returns the CPU time and the allocations that f took. A collection waits for other goroutines, so its duration
// depends on the machine's load.
func measured(f func()) (time.Duration, uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime()
	f()
	took := cpuTime() - began
	runtime.ReadMemStats(&after)
	return took, after.Mallocs - before.Mallocs
}

// cpuTime returns the user and system time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it has no reason to fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2])
}

// busyReceiver returns a receiver of n agents that have written every type of event.
// It collects only when the benchmark calls collect.
func busyReceiver(b *testing.B, n int, take consumer.ConsumeMetricsFunc) *ringReceiver {
	b.Helper()
	dir := b.TempDir()
	cfg := createDefaultConfig()
	cfg.Directories = []string{dir}
	next, err := consumer.NewMetrics(take)
	must.OK(b, err)
	cfg.InitialDelay = time.Hour
	on := machine{now: time.Now, hostname: func() (string, error) { return testHost, nil }, retryAfter: time.Millisecond}
	on.adapt = func(c *engine.Config) { c.RunInterval = time.Hour }
	component, err := newFactory(on).CreateMetrics(b.Context(), receivertest.NewNopSettings(metadata.Type), cfg, next)
	must.OK(b, err)
	r := component.(*pipeline) //nolint:forcetypeassert,errcheck // the factory made it
	must.OK(b, r.Start(b.Context(), componenttest.NewNopHost()))
	b.Cleanup(func() { _ = r.Shutdown(context.Background()) })
	for run, layout := range []ringbuf.Layout{ringbuf.V1, ringbuf.V4} { // an agent that is upgraded has the events of both
		for i := range n {
			w := ring(b, dir, fmt.Sprintf("worker-%04d", i), layout, 64)
			for kind := range ringbuf.Type(ringbuf.Types) {
				if layout == ringbuf.V4 || kind < ringbuf.TypeEventsDropped {
					push(b, w, ringbuf.NewEvent(kind, 1000))
				}
			}
			if layout == ringbuf.V1 {
				push(b, w, ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "ucx_progress_calls", 12))
			}
			must.OK(b, w.Close())
		}
		must.EventuallyTrue(b, "drained rings of every agent", func() bool { return r.drained(b, uint64(run+1)) == n })
	}
	return r.ringReceiver
}

// drained returns how many agents have restarted a number of times and are drained.
func (r *ringReceiver) drained(b *testing.B, runs uint64) (n int) {
	b.Helper()
	c, err := r.rings.Collect(b.Context(), false)
	must.OK(b, err)
	for _, a := range c.Snapshots {
		if a.Totals.Registered().Events == runs {
			n++
		}
	}
	return n
}
