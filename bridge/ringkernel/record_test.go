// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestEachCallUpdatesOnlyItsOwnFields(t *testing.T) {
	first, last := errors.New("first"), errors.New("last")
	later := start.Add(time.Second)
	const in, out = ringkernel.InputQueue, ringkernel.OutputQueue
	type kernel = ringkernel.Kernel
	for name, tt := range map[string]struct {
		call func(context.Context, *kernel)
		want ringkernel.Telemetry
	}{
		"none":          {func(context.Context, *kernel) {}, ringkernel.Telemetry{}},
		"receive":       {func(ctx context.Context, k *kernel) { k.Received(ctx) }, ringkernel.Telemetry{MessagesReceived: 1, LastMessageTime: later}},
		"send":          {func(ctx context.Context, k *kernel) { k.Sent(ctx) }, ringkernel.Telemetry{MessagesSent: 1}},
		"drop input":    {func(ctx context.Context, k *kernel) { k.Dropped(ctx, in) }, ringkernel.Telemetry{MessagesDropped: 1, InputDropped: 1}},
		"drop output":   {func(ctx context.Context, k *kernel) { k.Dropped(ctx, out) }, ringkernel.Telemetry{MessagesDropped: 1, OutputDropped: 1}},
		"errors":        {func(ctx context.Context, k *kernel) { k.Error(ctx, first); k.Error(ctx, last) }, ringkernel.Telemetry{Errors: 2, LastError: last}},
		"nil error":     {func(ctx context.Context, k *kernel) { k.Error(ctx, nil) }, ringkernel.Telemetry{}},
		"state":         {func(_ context.Context, k *kernel) { k.SetState(ringkernel.StateLaunched) }, ringkernel.Telemetry{State: ringkernel.StateLaunched}},
		"invalid state": {func(_ context.Context, k *kernel) { k.SetState(ringkernel.StateTerminated + 1) }, ringkernel.Telemetry{}},
		"no longer terminated": {
			func(_ context.Context, k *kernel) {
				k.SetState(ringkernel.StateTerminated)
				k.SetState(ringkernel.StateActive)
			}, ringkernel.Telemetry{State: ringkernel.StateActive},
		},
		"queue function":  {func(_ context.Context, k *kernel) { k.ObserveQueue(out, func() (int, int) { return 1, 16 }) }, ringkernel.Telemetry{OutputSize: 1, OutputCapacity: 16}},
		"negative result": {func(_ context.Context, k *kernel) { k.ObserveQueue(out, func() (int, int) { return -1, -2 }) }, ringkernel.Telemetry{}},
		"nil function": {
			func(_ context.Context, k *kernel) {
				k.ObserveQueue(out, func() (int, int) { return 1, 16 })
				k.ObserveQueue(out, nil)
			}, ringkernel.Telemetry{},
		},
		"invalid queue": {
			func(ctx context.Context, k *kernel) {
				k.Dropped(ctx, 2)
				k.ObserveQueue(2, func() (int, int) { return 1, 1 })
			}, ringkernel.Telemetry{},
		},
		"process": {
			func(ctx context.Context, k *kernel) {
				for _, latency := range []time.Duration{11, 10, 12} {
					k.Processed(ctx, latency)
				}
			}, ringkernel.Telemetry{MessagesProcessed: 3, TotalLatency: 33, MinLatency: 10, MaxLatency: 12},
		},
		"process once": {
			func(ctx context.Context, k *kernel) { k.Processed(ctx, 7) },
			ringkernel.Telemetry{MessagesProcessed: 1, TotalLatency: 7, MinLatency: 7, MaxLatency: 7},
		},
		"latency of zero": {
			func(ctx context.Context, k *kernel) { k.Processed(ctx, 5); k.Processed(ctx, 0) },
			ringkernel.Telemetry{MessagesProcessed: 2, TotalLatency: 5, MaxLatency: 5},
		},
		"negative latency": {
			func(ctx context.Context, k *kernel) { k.Processed(ctx, -3); k.Processed(ctx, 5) },
			ringkernel.Telemetry{MessagesProcessed: 2, TotalLatency: 5, MaxLatency: 5},
		},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			k := w.Register("k")
			pass(time.Second)
			tt.call(t.Context(), k)
			tt.want.KernelID, tt.want.StartTime, tt.want.Time = "k", start, later
			if d := cmp.Diff(tt.want, w.telemetry(t, "k"), cmpopts.EquateErrors()); d != "" {
				t.Errorf("Telemetry (-want +got):\n%s", d)
			}
		})
	}
}

// Counters start at 0, so that the first increase is visible. Unknown values aren't reported.
func TestEachMetricHasItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		use(t, w.Register("k"))
		w.Register("idle")
		pass(time.Second)
		want := map[string]float64{
			"ringkernel.messages.received{ringkernel.kernel.id=k}":                             2,
			"ringkernel.messages.sent{ringkernel.kernel.id=k}":                                 1,
			"ringkernel.messages.processed{ringkernel.kernel.id=k}":                            2,
			"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=input}":  1,
			"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=output}": 0,
			"ringkernel.message.duration{ringkernel.kernel.id=k}":                              2,
			"ringkernel.errors{error.type=timeout,ringkernel.kernel.id=k}":                     1,
			"ringkernel.queue.size{ringkernel.kernel.id=k,ringkernel.queue.name=input}":        2,
			"ringkernel.queue.capacity{ringkernel.kernel.id=k,ringkernel.queue.name=input}":    8,
			"ringkernel.throughput{ringkernel.kernel.id=k}":                                    2,
			"ringkernel.error_rate{ringkernel.kernel.id=k}":                                    0.5,
			"ringkernel.uptime{ringkernel.kernel.id=k}":                                        1,
			"ringkernel.last_message.time{ringkernel.kernel.id=k}":                             float64(start.Unix()),

			"ringkernel.messages.received{ringkernel.kernel.id=idle}":                             0,
			"ringkernel.messages.sent{ringkernel.kernel.id=idle}":                                 0,
			"ringkernel.messages.processed{ringkernel.kernel.id=idle}":                            0,
			"ringkernel.messages.dropped{ringkernel.kernel.id=idle,ringkernel.queue.name=input}":  0,
			"ringkernel.messages.dropped{ringkernel.kernel.id=idle,ringkernel.queue.name=output}": 0,
			"ringkernel.throughput{ringkernel.kernel.id=idle}":                                    0,
			"ringkernel.error_rate{ringkernel.kernel.id=idle}":                                    0,
			"ringkernel.uptime{ringkernel.kernel.id=idle}":                                        1,
		}
		for id, state := range map[string]string{"k": "active", "idle": "created"} {
			for _, s := range []string{"created", "launched", "active", "deactivated", "terminating", "terminated"} {
				want["ringkernel.kernel.status{ringkernel.kernel.id="+id+",ringkernel.kernel.state="+s+"}"] = 0
			}
			want["ringkernel.kernel.status{ringkernel.kernel.id="+id+",ringkernel.kernel.state="+state+"}"] = 1
		}
		if d := cmp.Diff(want, metrictest.Values(w.collect(t))); d != "" {
			t.Errorf("values (-want +got):\n%s", d)
		}
	})
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newWorld(t).Register("k")
		for _, ctx := range []context.Context{t.Context(), nil} {
			if n := testing.AllocsPerRun(1000, func() {
				k.Received(ctx)
				k.Sent(ctx)
				k.Dropped(ctx, ringkernel.OutputQueue)
				k.Processed(ctx, time.Microsecond)
			}); n != 0 {
				t.Errorf("context %v: %v allocations, want 0", ctx, n)
			}
		}
	})
}

func TestRatesAndAveragesAreDerivedFromCounts(t *testing.T) {
	type derived struct {
		Uptime                time.Duration
		Throughput, ErrorRate float64
		Average               time.Duration
	}
	for name, tt := range map[string]struct {
		after time.Duration
		t     ringkernel.Telemetry
		want  derived
	}{
		"nothing processed":         {time.Minute, ringkernel.Telemetry{Errors: 3}, derived{Uptime: time.Minute}},
		"no uptime":                 {0, ringkernel.Telemetry{MessagesProcessed: 4, Errors: 1}, derived{ErrorRate: 0.25}},
		"a clock that was set back": {-time.Hour, ringkernel.Telemetry{MessagesProcessed: 4}, derived{}},
		"all": {
			2 * time.Second,
			ringkernel.Telemetry{MessagesProcessed: 10, Errors: 15, TotalLatency: 25 * time.Millisecond},
			derived{2 * time.Second, 5, 1.5, 2500 * time.Microsecond},
		},
	} {
		tt.t.StartTime, tt.t.Time = start, start.Add(tt.after)
		got := derived{tt.t.Uptime(), tt.t.Throughput(), tt.t.ErrorRate(), tt.t.AverageLatency()}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestNilRuntimeDoesNothing(t *testing.T) {
	var rt *ringkernel.Runtime
	k := rt.Register("k")
	if k != nil || rt.Kernel("k") != nil {
		t.Errorf("Register returned kernel %v", k)
	}
	use(t, k)
	rt.Reset()
	rt.Reset("k")
	rt.Unregister("k")
	if _, ok := rt.Telemetry("k"); ok {
		t.Error("a nil Runtime has telemetry")
	}
	if d := cmp.Diff(ringkernel.Summary{}, rt.Summary()); d != "" {
		t.Errorf("Summary() isn't zero:\n%s", d)
	}
	must.OK(t, rt.Close())
}
