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
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

const sent = "ringkernel.messages.sent{ringkernel.kernel.id=k}"

// The gauges of an unregistered kernel end at once. Its counters are reported for another
// minute and at least once. The SDK keeps histograms, like those of any instrument.
func TestSeriesEndWhenAKernelIsUnregistered(t *testing.T) {
	for _, tt := range []struct {
		name      string
		intervals []time.Duration // between collections after Unregister
		reported  []bool          // the counters
	}{
		{"frequent collections", []time.Duration{time.Second, 58 * time.Second, time.Second}, []bool{true, true, false}},
		{"rare collections", []time.Duration{time.Hour, time.Hour}, []bool{true, false}},
	} {
		bubble(t, tt.name, func(t *testing.T) {
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
			for i, interval := range tt.intervals {
				pass(interval)
				got := metrictest.Values(w.collect(t))
				if _, ok := got[sent]; ok != tt.reported[i] {
					t.Errorf("collection %d: counters are reported: %t", i, ok)
				}
				for series := range got {
					for _, gauge := range []string{"status", "queue.", "uptime", "last_message"} {
						if name, _, _ := strings.Cut(series, "{"); strings.Contains(name, gauge) {
							t.Errorf("collection %d: %s is reported", i, series)
						}
					}
				}
			}
		})
	}
}

// deltas adds up the counts of a reader with delta temporality.
func deltas(t *testing.T, reader sdkmetric.Reader, total map[string]int64) {
	t.Helper()
	for _, m := range collect(t, reader) {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok || !sum.IsMonotonic {
			continue
		}
		for _, p := range sum.DataPoints {
			if p.Value < 0 {
				t.Errorf("%s decreases by %d", m.Name, -p.Value)
			}
			total[m.Name+"{"+p.Attributes.Encoded(attribute.DefaultEncoder())+"}"] += p.Value
		}
	}
}

func deltaReader() *sdkmetric.ManualReader {
	return sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(
		func(sdkmetric.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }))
}

// A kernel that is registered again loses no count and counts none twice, whatever is
// collected in between.
func TestCountsOfAKernelThatIsRegisteredAgain(t *testing.T) {
	for _, tt := range []struct {
		name        string
		gap         time.Duration // until it is registered again
		collections int           // in that time, by the first reader
		cumulative  float64       // of the second reader, which doesn't collect in that time
	}{
		{"at once", 0, 0, 105},
		{"within a minute", 30 * time.Second, 3, 105},
		{"after more than a minute", 90 * time.Second, 3, 5},
		{"after an hour", time.Hour, 100, 5},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			delta, cumulative := deltaReader(), sdkmetric.NewManualReader()
			rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(
				sdkmetric.NewMeterProvider(sdkmetric.WithReader(delta), sdkmetric.WithReader(cumulative))))
			total := make(map[string]int64)
			old := rt.Register("k")
			for range 100 {
				old.Sent(t.Context())
			}
			deltas(t, delta, total)
			collect(t, cumulative)
			rt.Unregister("k")
			for range tt.collections {
				pass(tt.gap / time.Duration(tt.collections))
				deltas(t, delta, total)
			}
			k := rt.Register("k")
			if same := k == old; same != (tt.cumulative == 105) {
				t.Errorf("the same *Kernel: %t", same)
			}
			for range 5 {
				k.Sent(t.Context())
			}
			deltas(t, delta, total)
			deltas(t, delta, total)
			if total[sent] != 105 {
				t.Errorf("deltas add up to %d, want 105", total[sent])
			}
			if got := metrictest.Values(collect(t, cumulative))[sent]; got != tt.cumulative {
				t.Errorf("cumulative %v, want %v", got, tt.cumulative)
			}
			if s, _ := rt.Telemetry("k"); s.MessagesSent != 5 {
				t.Errorf("the snapshot has %d messages, want 5", s.MessagesSent)
			}
		})
	}
}

// Messages that an old *Kernel counts are never lost silently.
func TestOldKernelReportsThatItRecordsNothing(t *testing.T) {
	errs := metrictest.Handled(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.Register("k")
		w.Unregister("k")
		old.Sent(t.Context()) // still counts
		w.collect(t)
		pass(time.Minute)
		w.collect(t)
		if len(errs()) > 0 {
			t.Errorf("errors: %v", errs())
		}
		w.Register("k")
		use(t, old)
		old.ObserveQueue(ringkernel.InputQueue, func() (int, int) { return 1, 1 })
		if len(errs()) != 1 || !strings.Contains(errs()[0], `"k"`) || !strings.Contains(errs()[0], "new *Kernel") {
			t.Errorf("errors: %v", errs())
		}
		got := metrictest.Values(w.collect(t))
		if got[sent] != 0 || got["ringkernel.message.duration{ringkernel.kernel.id=k}"] != 0 {
			t.Errorf("the old kernel recorded %v", got)
		}
	})
}

// A kernel that is registered again has neither the queue function nor the sizes of before.
func TestQueuesEndWithTheKernel(t *testing.T) {
	const series = "{ringkernel.kernel.id=k,ringkernel.queue.name=input}"
	w := newWorld(t)
	k := w.Register("k")
	k.SetQueueSize(ringkernel.InputQueue, 3)
	k.SetQueueCapacity(ringkernel.InputQueue, 4)
	k.ObserveQueue(ringkernel.InputQueue, func() (int, int) { return 1, 16 })
	if got := metrictest.Values(w.collect(t)); got["ringkernel.queue.size"+series] != 1 || got["ringkernel.queue.capacity"+series] != 16 {
		t.Errorf("the queue function's values are %v", got)
	}
	w.Unregister("k")
	w.Register("k")
	for key := range metrictest.Values(w.collect(t)) {
		if strings.HasPrefix(key, "ringkernel.queue.") {
			t.Errorf("%s is reported", key)
		}
	}
}

func TestEachCallOfAnOldKernelIsReported(t *testing.T) {
	ctx := t.Context()
	for name, call := range map[string]func(*ringkernel.Kernel){
		"Received":     func(k *ringkernel.Kernel) { k.Received(ctx) },
		"Sent":         func(k *ringkernel.Kernel) { k.Sent(ctx) },
		"Dropped":      func(k *ringkernel.Kernel) { k.Dropped(ctx, ringkernel.OutputQueue) },
		"Processed":    func(k *ringkernel.Kernel) { k.Processed(ctx, us) },
		"Error":        func(k *ringkernel.Kernel) { k.Error(ctx, context.Canceled) },
		"SetQueueSize": func(k *ringkernel.Kernel) { k.SetQueueSize(ringkernel.InputQueue, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			errs := metrictest.Handled(t)
			w := newWorld(t)
			k := w.Register("k")
			must.OK(t, w.Close())
			for range 2 {
				call(k)
			}
			if len(errs()) != 1 {
				t.Errorf("errors: %v", errs())
			}
		})
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

// unique fails the test for a metric that has two data points with the same attributes,
// or attributes that aren't UTF-8. One such point makes a whole Prometheus page invalid.
func unique(t *testing.T, all []metricdata.Metrics) {
	t.Helper()
	for _, m := range all {
		seen := make(map[attribute.Distinct]bool)
		metrictest.EachPoint(m, func(set attribute.Set, _ float64) {
			if seen[set.Equivalent()] {
				t.Errorf("%s has two points with %v", m.Name, set.ToSlice())
			}
			seen[set.Equivalent()] = true
			for _, kv := range set.ToSlice() {
				if !utf8.ValidString(kv.Value.AsString()) {
					t.Errorf("%s has %s=%q", m.Name, kv.Key, kv.Value.AsString())
				}
			}
		})
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
	all := collect(t, reader)
	unique(t, all)
	got := metrictest.Values(all)
	for series, want := range map[string]float64{
		sent: 2,
		"ringkernel.messages.sent{ringkernel.kernel.id=k\uFFFD}":    6,
		"ringkernel.message.duration{ringkernel.kernel.id=k\uFFFD}": 12,
	} {
		if got[series] != want {
			t.Errorf("%s = %v, want %v", series, got[series], want)
		}
	}
	c := ringkernel.NewRuntime(provider, ringkernel.WithAttributes(attribute.String("device", "1")))
	c.Register("k").Sent(t.Context())
	if got := metrictest.Values(collect(t, reader)); got[sent] != 2 || got["ringkernel.messages.sent{device=1,ringkernel.kernel.id=k}"] != 1 {
		t.Errorf("with an attribute: %v", got)
	}
}

// The kernels that were registered first keep their series.
func TestSeriesWithinTheCardinalityLimitStayTheSame(t *testing.T) {
	rt, reader := newRuntime([]sdkmetric.Option{sdkmetric.WithCardinalityLimit(3)})
	for i := range 5 {
		use(t, rt.Register(kernelID(i)))
	}
	first := metrictest.Values(collect(t, reader))
	if got := first["ringkernel.messages.sent{otel.metric.overflow=true}"]; got != 3 {
		t.Errorf("%v messages beyond the limit, want 3", got)
	}
	for _, state := range []string{"again", "unregistered"} {
		all := collect(t, reader)
		unique(t, all)
		for series, v := range metrictest.Values(all) {
			if strings.HasPrefix(series, "ringkernel.messages.") && first[series] != v {
				t.Errorf("%s: %s changed from %v to %v", state, series, first[series], v)
			}
		}
		rt.Unregister(kernelID(0)) // its counters are still reported
	}
}

// 10,000 kernels that come and go leave nothing behind, except the histograms that the
// SDK keeps, which its cardinality limit bounds.
func TestMemoryOfUnregisteredKernelsIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kernels = 10_000
		rt, reader := newRuntime([]sdkmetric.Option{sdkmetric.WithCardinalityLimit(100)})
		rt.Register("stays").Processed(t.Context(), us)
		cycle := func() float64 {
			for i := range kernels {
				use(t, rt.Register(kernelID(i)))
			}
			unique(t, collect(t, reader))
			for i := range kernels {
				rt.Unregister(kernelID(i))
			}
			pass(time.Minute)
			return heap(t, reader)
		}
		before := cycle()
		if after := cycle(); after > 1.1*before {
			t.Errorf("%.0f bytes before, %.0f after", before, after)
		}
		if got := metrictest.Values(collect(t, reader)); got["ringkernel.messages.sent{ringkernel.kernel.id=stays}"] != 0 || len(got) > 200 {
			t.Errorf("%d series", len(got))
		}
	})
}

// The limit includes what the SDK takes for a kernel.
func TestKernelThat64GoroutinesUseTakesAtMost8KB(t *testing.T) {
	const kernels, goroutines = 500, 64
	rt, reader := newRuntime(nil)
	before := heap(t, reader)
	var using sync.WaitGroup
	for range goroutines {
		using.Go(func() {
			for i := range kernels {
				k := rt.Register(kernelID(i))
				k.Received(t.Context())
				k.Processed(t.Context(), time.Duration(i))
				k.Sent(t.Context())
			}
		})
	}
	using.Wait()
	if each := (heap(t, reader) - before) / kernels; each > 8000 {
		t.Errorf("a kernel takes %.0f bytes", each)
	}
	runtime.KeepAlive(rt)
}

// heap returns the memory in use after two collections by the reader.
func heap(t *testing.T, reader sdkmetric.Reader) float64 {
	t.Helper()
	for range 2 {
		collect(t, reader)
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func kernelID(i int) string { return fmt.Sprint("kernel-", i) }

func TestCloseEndsAllSeries(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	k.Sent(t.Context())
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := metrictest.Values(w.collect(t)); len(got) != 0 {
		t.Errorf("after Close: %v", got)
	}
}
