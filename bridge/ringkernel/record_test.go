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
		"none":            {func(context.Context, *kernel) {}, ringkernel.Telemetry{}},
		"receive":         {func(ctx context.Context, k *kernel) { k.Received(ctx) }, ringkernel.Telemetry{MessagesReceived: 1, LastMessageTime: later}},
		"send":            {func(ctx context.Context, k *kernel) { k.Sent(ctx) }, ringkernel.Telemetry{MessagesSent: 1}},
		"drop input":      {func(ctx context.Context, k *kernel) { k.Dropped(ctx, in) }, ringkernel.Telemetry{MessagesDropped: 1, InputDropped: 1}},
		"drop output":     {func(ctx context.Context, k *kernel) { k.Dropped(ctx, out) }, ringkernel.Telemetry{MessagesDropped: 1, OutputDropped: 1}},
		"errors":          {func(ctx context.Context, k *kernel) { k.Error(ctx, first); k.Error(ctx, last) }, ringkernel.Telemetry{Errors: 2, LastError: last}},
		"nil error":       {func(ctx context.Context, k *kernel) { k.Error(ctx, nil) }, ringkernel.Telemetry{}},
		"state":           {func(_ context.Context, k *kernel) { setState(t, k, ringkernel.StateLaunched) }, ringkernel.Telemetry{State: ringkernel.StateLaunched}},
		"queue size":      {func(_ context.Context, k *kernel) { k.SetQueueSize(out, 4) }, ringkernel.Telemetry{OutputSize: 4}},
		"queue capacity":  {func(_ context.Context, k *kernel) { k.SetQueueCapacity(in, 9) }, ringkernel.Telemetry{InputCapacity: 9}},
		"negative size":   {func(_ context.Context, k *kernel) { k.SetQueueSize(in, -1); k.SetQueueCapacity(in, -1) }, ringkernel.Telemetry{}},
		"queue function":  {func(_ context.Context, k *kernel) { k.ObserveQueue(out, func() (int, int) { return 1, 16 }) }, ringkernel.Telemetry{OutputSize: 1, OutputCapacity: 16}},
		"negative result": {func(_ context.Context, k *kernel) { k.ObserveQueue(out, func() (int, int) { return -1, -2 }) }, ringkernel.Telemetry{}},
		"nil function": {
			func(_ context.Context, k *kernel) {
				k.SetQueueSize(out, 4)
				k.ObserveQueue(out, func() (int, int) { return 1, 16 })
				k.ObserveQueue(out, nil)
			}, ringkernel.Telemetry{OutputSize: 4},
		},
		"invalid queue": {
			func(ctx context.Context, k *kernel) {
				k.Dropped(ctx, 2)
				k.SetQueueSize(2, 1)
				k.SetQueueCapacity(2, 1)
				k.ObserveQueue(2, func() (int, int) { return 1, 1 })
			}, ringkernel.Telemetry{},
		},
		"process": {
			func(ctx context.Context, k *kernel) {
				for _, latency := range []time.Duration{30, 10, 20} {
					k.Processed(ctx, latency)
				}
			}, ringkernel.Telemetry{MessagesProcessed: 3, TotalLatency: 60, MinLatency: 10, MaxLatency: 30},
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
				"Received":     func() { k.Received(ctx) },
				"Sent":         func() { k.Sent(ctx) },
				"Dropped":      func() { k.Dropped(ctx, ringkernel.OutputQueue) },
				"Processed":    func() { k.Processed(ctx, time.Microsecond) },
				"SetQueueSize": func() { k.SetQueueSize(ringkernel.InputQueue, 1) },
			} {
				if n := testing.AllocsPerRun(1000, f); n != 0 {
					t.Errorf("%s, context with %s: %v allocations per call, want 0", call, name, n)
				}
			}
		}
	})
}

func TestRatesAndAveragesAreDerivedFromCounts(t *testing.T) {
	after := func(d time.Duration, t ringkernel.Telemetry) ringkernel.Telemetry {
		t.StartTime, t.Time = start, start.Add(d)
		return t
	}
	for _, tt := range []struct {
		name       string
		t          ringkernel.Telemetry
		uptime     time.Duration
		throughput float64
		errorRate  float64
		average    time.Duration
	}{
		{name: "the zero value"},
		{
			name:   "nothing processed",
			t:      after(time.Minute, ringkernel.Telemetry{Errors: 3}),
			uptime: time.Minute,
		},
		{
			name:      "no uptime",
			t:         after(0, ringkernel.Telemetry{MessagesProcessed: 4, Errors: 1}),
			errorRate: 0.25,
		},
		{
			name: "a clock that was set back",
			t:    after(-time.Hour, ringkernel.Telemetry{MessagesProcessed: 4}),
		},
		{
			name: "all",
			t: after(2*time.Second, ringkernel.Telemetry{
				MessagesProcessed: 10, Errors: 15, TotalLatency: 25 * time.Millisecond,
			}),
			uptime:     2 * time.Second,
			throughput: 5,
			errorRate:  1.5,
			average:    2500 * time.Microsecond,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.t.Uptime(); got != tt.uptime {
				t.Errorf("Uptime() = %v, want %v", got, tt.uptime)
			}
			if got := tt.t.Throughput(); got != tt.throughput {
				t.Errorf("Throughput() = %v, want %v", got, tt.throughput)
			}
			if got := tt.t.ErrorRate(); got != tt.errorRate {
				t.Errorf("ErrorRate() = %v, want %v", got, tt.errorRate)
			}
			if got := tt.t.AverageLatency(); got != tt.average {
				t.Errorf("AverageLatency() = %v, want %v", got, tt.average)
			}
		})
	}
}

func TestNilRuntimeDoesNothing(t *testing.T) {
	var rt *ringkernel.Runtime
	k := rt.Register("k")
	if k != nil || k.ID() != "" || rt.Kernel("k") != nil {
		t.Errorf("Register returned kernel %q", k.ID())
	}
	k.Received(t.Context())
	k.Sent(t.Context())
	k.Processed(t.Context(), time.Millisecond)
	k.Dropped(t.Context(), ringkernel.InputQueue)
	k.Error(t.Context(), errors.New("no"))
	k.SetQueueSize(ringkernel.InputQueue, 1)
	k.SetQueueCapacity(ringkernel.InputQueue, 1)
	k.ObserveQueue(ringkernel.OutputQueue, func() (int, int) { return 1, 1 })
	setState(t, k, ringkernel.StateTerminated)
	setState(t, k, ringkernel.StateCreated)
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
