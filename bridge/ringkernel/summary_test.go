// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestSummaryHasAllKernelsAndTheirTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pass(2 * time.Second) // the Runtime is older than its kernels
		b, a := w.Register("b"), w.Register("a")
		for range 4 {
			a.Processed(t.Context(), time.Millisecond)
			b.Processed(t.Context(), time.Millisecond)
		}
		b.Processed(t.Context(), time.Millisecond)
		a.Error(t.Context(), errors.New("no"))
		b.Dropped(t.Context(), ringkernel.OutputQueue)
		b.Dropped(t.Context(), ringkernel.OutputQueue)
		pass(2 * time.Second)

		want := ringkernel.Summary{
			Time:                start.Add(4 * time.Second),
			Uptime:              4 * time.Second,
			KernelCount:         2,
			TotalMessages:       9,
			TotalErrors:         1,
			TotalDropped:        2,
			AggregateThroughput: 4.5,
			Kernels:             []ringkernel.Telemetry{w.telemetry(t, "a"), w.telemetry(t, "b")},
		}
		if d := cmp.Diff(want, w.Summary(), cmpopts.EquateErrors()); d != "" {
			t.Errorf("Summary() (-want +got):\n%s", d)
		}
	})
}

func TestResetRestartsSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"a", "b", "c"} {
			k := w.Register(id)
			setState(t, k, ringkernel.StateActive)
			k.ObserveQueue(ringkernel.InputQueue, func() (int, int) { return 2, 0 })
			k.Received(t.Context())
			k.Sent(t.Context())
			k.Dropped(t.Context(), ringkernel.InputQueue)
			k.Processed(t.Context(), time.Minute)
			k.Error(t.Context(), errors.New("no"))
		}
		pass(time.Minute)
		before := w.telemetry(t, "c")
		fresh := func(id string) ringkernel.Telemetry {
			return ringkernel.Telemetry{
				KernelID: id, State: ringkernel.StateActive, InputSize: 2,
				StartTime: time.Now(), Time: time.Now(),
			}
		}

		w.Reset("a", "b", "unknown")
		want := []ringkernel.Telemetry{fresh("a"), fresh("b"), before}
		if d := cmp.Diff(want, w.Summary().Kernels, cmpopts.EquateErrors()); d != "" {
			t.Errorf("after Reset of a and b (-want +got):\n%s", d)
		}
		w.Reset()
		want[2] = fresh("c")
		if d := cmp.Diff(want, w.Summary().Kernels, cmpopts.EquateErrors()); d != "" {
			t.Errorf("after Reset of all (-want +got):\n%s", d)
		}

		// Later messages count from 0, and the shortest latency starts over.
		pass(time.Second)
		a := w.Kernel("a")
		a.Received(t.Context())
		a.Processed(t.Context(), 2*time.Second)
		a.Processed(t.Context(), 3*time.Second)
		pass(time.Second)
		next := fresh("a")
		next.StartTime = start.Add(time.Minute)
		next.MessagesReceived, next.MessagesProcessed = 1, 2
		next.LastMessageTime = start.Add(time.Minute + time.Second)
		next.TotalLatency, next.MinLatency, next.MaxLatency = 5*time.Second, 2*time.Second, 3*time.Second
		got := w.telemetry(t, "a")
		if d := cmp.Diff(next, got, cmpopts.EquateErrors()); d != "" {
			t.Errorf("after the reset (-want +got):\n%s", d)
		}
		if got.Uptime() != 2*time.Second || got.Throughput() != 1 {
			t.Errorf("uptime %v and throughput %v, want 2s and 1", got.Uptime(), got.Throughput())
		}
	})
}

// Metrics of counters and latencies continue after a reset; the uptime restarts.
func TestResetDoesNotAffectCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		use(t, w.Register("k"))
		pass(time.Minute)
		w.Reset("k")
		use(t, w.Register("k"))
		pass(time.Second)
		got := metrictest.Values(w.collect(t))
		for series, want := range map[string]float64{
			"ringkernel.messages.received{ringkernel.kernel.id=k}":                            2 + 2,
			"ringkernel.messages.sent{ringkernel.kernel.id=k}":                                1 + 1,
			"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=input}": 1 + 1,
			"ringkernel.messages.processed{ringkernel.kernel.id=k}":                           2 + 2,
			"ringkernel.message.duration{ringkernel.kernel.id=k}":                             2 + 2,
			"ringkernel.errors{error.type=timeout,ringkernel.kernel.id=k}":                    1 + 1,
			"ringkernel.uptime{ringkernel.kernel.id=k}":                                       1,
		} {
			if got[series] != want {
				t.Errorf("%s = %v, want %v", series, got[series], want)
			}
		}
	})
}

func TestSummaryAsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		utilization := 0.25
		w := newWorld(t, ringkernel.WithGPUUtilization(func() (float64, bool) { return utilization, utilization > 0 }))
		k := w.Register("worker_0")
		setState(t, k, ringkernel.StateActive)
		setState(t, w.Register("worker_1"), ringkernel.StateLaunched)
		for range 26 {
			k.Processed(t.Context(), 2*time.Millisecond)
		}
		k.Error(t.Context(), errors.New("no"))
		k.Dropped(t.Context(), ringkernel.InputQueue)
		pass(4 * time.Second)
		const want = `=== Telemetry @ 946684804 ===
Kernels: 2
Messages: 26
Throughput: 6.5 msg/s
Errors: 1
Dropped: 1
GPU: 25.0%
  worker_0: active, 26 processed, 6.5 msg/s, latency 2ms avg, 2ms min, 2ms max, 1 errors
  worker_1: launched, 0 processed, 0.0 msg/s, latency 0s avg, 0s min, 0s max, 0 errors
`
		if d := cmp.Diff(want, w.Summary().String()); d != "" {
			t.Errorf("text (-want +got):\n%s", d)
		}
		utilization = 0
		if text := w.Summary().String(); strings.Contains(text, "GPU") {
			t.Errorf("without a GPU:\n%s", text)
		}
		var disabled *ringkernel.Runtime
		if text := disabled.Summary().String(); text != "=== Telemetry is disabled ===\n" {
			t.Errorf("a nil Runtime: %q", text)
		}
	})
}
