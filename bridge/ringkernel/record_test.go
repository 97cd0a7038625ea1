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

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
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

func TestRecordingDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.Register("k")
		for name, ctx := range map[string]context.Context{
			"background": context.Background(), "no span": t.Context(), "unsampled span": withSpan(t, 1, false), "nil": nil,
		} {
			for call, f := range map[string]func(){
				"Received":  func() { k.Received(ctx) },
				"Sent":      func() { k.Sent(ctx) },
				"Dropped":   func() { k.Dropped(ctx, ringkernel.OutputQueue) },
				"Processed": func() { k.Processed(ctx, time.Microsecond) },
			} {
				if n := testing.AllocsPerRun(1000, f); n != 0 {
					t.Errorf("%s, context with %s: %v allocations per call, want 0", call, name, n)
				}
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
	k.Received(t.Context())
	k.Sent(t.Context())
	k.Processed(t.Context(), time.Millisecond)
	k.Dropped(t.Context(), ringkernel.InputQueue)
	k.Error(t.Context(), errors.New("no"))
	k.ObserveQueue(ringkernel.OutputQueue, func() (int, int) { return 1, 1 })
	k.SetState(ringkernel.StateTerminated)
	k.SetState(ringkernel.StateCreated)
	rt.Reset()
	rt.Reset("k")
	rt.Unregister("k")
	if _, ok := rt.Telemetry("k"); ok {
		t.Error("a nil Runtime has telemetry")
	}
	if d := cmp.Diff(ringkernel.Summary{}, rt.Summary()); d != "" {
		t.Errorf("Summary() isn't zero:\n%s", d)
	}
	if err := rt.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
