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
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

const sent = "ringkernel.messages.sent{ringkernel.kernel.id=k}"

// The series of an unregistered kernel end, except those of synchronous instruments.
func TestSeriesEndWhenAKernelIsUnregistered(t *testing.T) {
	w := newWorld(t)
	use(t, w.Register("k"))
	w.Unregister("unknown")
	w.Unregister("k")
	w.Unregister("k")
	if s := w.Summary(); s.KernelCount != 0 {
		t.Errorf("the summary has %d kernels, want none", s.KernelCount)
	}
	if _, ok := w.Telemetry("k"); ok {
		t.Error("Telemetry returned an unregistered kernel")
	}
	want := map[string]float64{
		"ringkernel.message.duration{ringkernel.kernel.id=k}":          2,
		"ringkernel.errors{error.type=timeout,ringkernel.kernel.id=k}": 1,
	}
	if d := cmp.Diff(want, metrictest.Values(w.collect(t))); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
	k := w.Register("k")
	k.Sent(t.Context())
	if again := w.Register("k"); again != k {
		t.Error("Register of a registered ID returned another kernel")
	}
	if got := metrictest.Values(w.collect(t)); got[sent] != 1 {
		t.Errorf("the new kernel sent %v messages, want 1", got[sent])
	}
	for range 2 {
		must.OK(t, w.Close())
	}
	k.Sent(t.Context())
	if d := cmp.Diff(want, metrictest.Values(w.collect(t))); d != "" || w.Kernel("k") != nil {
		t.Errorf("after Close, kernel %v (-want +got):\n%s", w.Kernel("k"), d)
	}
}

// The error handler may record.
func TestRegisterWithAnEmptyIDReportsAnErrorAndRecordsNothing(t *testing.T) {
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	w := newWorld(t)
	var errs []string
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		errs = append(errs, err.Error())
		use(t, w.Register("handler"))
	}))
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
		calls++
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
	if calls != 1 {
		t.Errorf("the function ran %d times, want once before Unregister", calls)
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

// Kernels with ever new IDs leave nothing behind, even if nobody collects.
func TestMemoryOfUnregisteredKernelsIsReleased(t *testing.T) {
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(noop.NewMeterProvider()))
	cycle := func() float64 {
		for i := range 20_000 {
			use(t, rt.Register(kernelID(i)))
			rt.Unregister(kernelID(i))
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	if before, after := cycle(), cycle(); after > before+1<<20 {
		t.Errorf("%.0f bytes before, %.0f after", before, after)
	}
	runtime.KeepAlive(rt)
}

func kernelID(i int) string { return fmt.Sprint("kernel-", i) }
