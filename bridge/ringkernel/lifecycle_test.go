// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

const sent = "ringkernel.messages.sent{ringkernel.kernel.id=k}"

// The metrics stay when a kernel is unregistered, and continue when it is registered again.
func TestMetricsOfAnUnregisteredKernelStayAndContinue(t *testing.T) {
	w := newWorld(t)
	use(t, w.Register("k"))
	want := metrictest.Values(w.collect(t))
	w.Unregister("unknown")
	for range 2 {
		w.Unregister("k")
		if s := w.Summary(); s.KernelCount != 0 {
			t.Errorf("the summary has %d kernels, want none", s.KernelCount)
		}
		if _, ok := w.Telemetry("k"); ok {
			t.Error("Telemetry returned an unregistered kernel")
		}
		want["ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state=active}"] = 0
		want["ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state=terminated}"] = 1
		if d := cmp.Diff(want, metrictest.Values(w.collect(t)), sinceStart); d != "" {
			t.Errorf("values of an unregistered kernel (-want +got):\n%s", d)
		}
	}
	use(t, w.Register("k"))
	if s := w.telemetry(t, "k"); s.MessagesSent != 1 {
		t.Errorf("the snapshot of the new kernel has %d sent messages, want 1", s.MessagesSent)
	}
	if again := w.Register("k"); again != w.Kernel("k") {
		t.Error("Register of a registered ID returned another kernel")
	}
	must.OK(t, w.Close())
	for key := range want {
		if strings.Contains(key, ".messages.") || strings.Contains(key, "duration") || strings.Contains(key, ".errors") {
			want[key] *= 2
		}
	}
	if d := cmp.Diff(want, metrictest.Values(w.collect(t)), sinceStart); d != "" {
		t.Errorf("values after Close (-want +got):\n%s", d)
	}
}

// sinceStart ignores what depends on the clock.
var sinceStart = cmpopts.IgnoreMapEntries(func(series string, _ float64) bool {
	return strings.HasPrefix(series, "ringkernel.uptime") || strings.HasPrefix(series, "ringkernel.throughput") || strings.HasPrefix(series, "ringkernel.last")
})

func TestAnUnregisteredIDIsReportedOnce(t *testing.T) {
	errs, w := metrictest.Handled(t), newWorld(t)
	for range 2 {
		for _, id := range []string{"typo", "another"} {
			w.Kernel(id).Sent(t.Context())
		}
		w.Unregister("unknown")
		w.Telemetry("unknown")
	}
	if got := errs(); len(got) != 1 || !strings.Contains(got[0], `"typo" isn't registered`) {
		t.Errorf("errors %q, want one of typo", got)
	}
}

// The error handler may record.
func TestRegisterWithAnEmptyIDReportsAnErrorAndRecordsNothing(t *testing.T) {
	w := newWorld(t)
	var errs []string
	metrictest.Handle(t, func(err error) {
		errs = append(errs, err.Error())
		use(t, w.Register("handler"))
	})
	if k := w.Register(""); k != nil || w.Summary().KernelCount != 1 {
		t.Errorf("kernel %v of %d is registered", k, w.Summary().KernelCount)
	}
	if len(errs) != 1 || !strings.Contains(errs[0], "the ID is empty") {
		t.Errorf("errors: %q", errs)
	}
}

func TestUnregisterWaitsForTheQueueFunction(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	calls, running, unregistered := 0, make(chan struct{}), make(chan struct{})
	k.ObserveQueue(ringkernel.InputQueue, func() (int, int) {
		if calls++; calls > 1 {
			return 1, 2
		}
		close(running)
		select {
		case <-unregistered:
			t.Error("Unregister returned while the function was running")
		case <-time.After(20 * time.Millisecond): // long enough for a call that doesn't wait
		}
		return 0, 0
	})
	var collecting sync.WaitGroup
	collecting.Go(func() { w.collect(t) })
	<-running
	w.Unregister("k")
	close(unregistered)
	collecting.Wait()
	w.collect(t)
	w.Register("k")
	w.collect(t)
	if calls != 2 {
		t.Errorf("the function ran %d times, want once before Unregister and once in it", calls)
	}
}

// Closing a Runtime and collecting take the same lock of the SDK.
func TestRuntimeIsClosedDuringACollection(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	collecting, proceed, closed := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	_, err := provider.Meter("another").Int64ObservableGauge("first", metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error {
		close(collecting)
		<-proceed
		return nil
	}))
	must.OK(t, err)
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
	go func() { closed <- reader.Collect(t.Context(), new(metricdata.ResourceMetrics)) }()
	<-collecting
	go func() { closed <- rt.Close() }()
	<-time.After(20 * time.Millisecond) // long enough for a Close that waits for the SDK
	close(proceed)
	for range 2 {
		select {
		case err := <-closed:
			must.OK(t, err)
		case <-time.After(must.Patience):
			t.Fatal("Close and the collection wait for each other")
		}
	}
}

func TestKernelsOfOneNameAddUp(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := ringkernel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	a, b := ringkernel.NewRuntime(provider), ringkernel.NewRuntime(provider)
	for _, id := range []string{"k", "k\xff", "k\xfe", "k\uFFFD"} {
		use(t, a.Register(id))
		use(t, b.Register(id))
	}
	got := metrictest.Values(metrictest.Collect(t, reader))
	for series, want := range map[string]float64{
		sent: 2,
		"ringkernel.messages.sent{ringkernel.kernel.id=k\uFFFD}":    6,
		"ringkernel.message.duration{ringkernel.kernel.id=k\uFFFD}": 12,
	} {
		if got[series] != want {
			t.Errorf("%s = %v, want %v", series, got[series], want)
		}
	}
}

// The kernels that were registered first keep their series.
func TestSeriesWithinTheCardinalityLimitStayTheSame(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(3))
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
	for i := range 50 {
		use(t, rt.Register(kernelID(i)))
	}
	for range 3 {
		got := metrictest.Values(metrictest.Collect(t, reader))
		for _, name := range []string{"sent", "received", "processed"} {
			for _, of := range []string{"ringkernel.kernel.id=kernel-0", "ringkernel.kernel.id=kernel-1", "otel.metric.overflow=true"} {
				if series := "ringkernel.messages." + name + "{" + of + "}"; got[series] == 0 {
					t.Errorf("%s is missing", series)
				}
			}
		}
		if got := got["ringkernel.messages.sent{otel.metric.overflow=true}"]; got != 48 {
			t.Errorf("%v messages beyond the limit, want 48", got)
		}
	}
}

// However many kernels come and go between two exports, and whatever their IDs: all messages are exported once.
func TestNoMessageOfUnregisteredKernelsIsLost(t *testing.T) {
	for name, ids := range map[string]int{"beyond the limit of the SDK": 5_000, "beyond the limit of names": scope.Limit + 100} {
		t.Run(name, func(t *testing.T) {
			cumulative := sdkmetric.NewManualReader()
			delta := sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(func(sdkmetric.InstrumentKind) metricdata.Temporality {
				return metricdata.DeltaTemporality
			}))
			limit := 0
			if ids > scope.Limit {
				limit = -1
			}
			provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(cumulative), sdkmetric.WithReader(delta), sdkmetric.WithCardinalityLimit(limit))
			rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
			var added float64
			for round := range 2 {
				for i := range ids {
					k := rt.Register(kernelID(i * (round + 1))) // some again, some new
					k.Sent(t.Context())
					rt.Unregister(kernelID(i * (round + 1)))
				}
				for _, reader := range []*sdkmetric.ManualReader{cumulative, delta} {
					var sum float64
					ms := metrictest.Collect(t, reader)
					metrictest.EachPoint(metrictest.Find(t, ms, semconv.KernelMessagesSent.Name), func(set attribute.Set, v float64) {
						if sum += v; v < 0 {
							t.Errorf("%v sent %v messages", set, v)
						}
					})
					if reader == delta {
						added += sum
						sum = added
					}
					if want := float64(ids * (round + 1)); sum != want {
						t.Errorf("round %d: %v messages were exported, want %v", round, sum, want)
					}
				}
			}
		})
	}
}

// Kernels with ever new IDs leave a bounded amount of memory behind, even if nobody collects.
func TestMemoryOfUnregisteredKernelsIsBounded(t *testing.T) {
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(noop.NewMeterProvider()))
	cycle := func(from int) float64 {
		for i := from; i < from+2*scope.Limit; i++ {
			use(t, rt.Register(kernelID(i)))
			rt.Unregister(kernelID(i))
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	if before, after := cycle(0), cycle(2*scope.Limit); after > before+1<<20 {
		t.Errorf("%.0f bytes before, %.0f after", before, after)
	}
	runtime.KeepAlive(rt)
}

func kernelID(i int) string { return fmt.Sprint("kernel-", i) }
