// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestEachCallUpdatesOnlyItsOwnFields(t *testing.T) {
	err := errors.New("no")
	later := start.Add(time.Second)
	for _, tt := range []struct {
		name string
		call func(context.Context, *ringkernel.Kernel)
		want ringkernel.Telemetry
	}{
		{
			"receive",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Received(ctx) },
			ringkernel.Telemetry{MessagesReceived: 1, LastMessageTime: later},
		},
		{
			"send",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Sent(ctx) },
			ringkernel.Telemetry{MessagesSent: 1},
		},
		{
			"process",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Processed(ctx, 7) },
			ringkernel.Telemetry{
				MessagesProcessed: 1, TotalLatency: 7, MinLatency: 7, MaxLatency: 7, P50Latency: 7, P99Latency: 7,
			},
		},
		{
			"drop at the input",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Dropped(ctx, ringkernel.InputQueue) },
			ringkernel.Telemetry{MessagesDropped: 1, Input: ringkernel.QueueTelemetry{Dropped: 1}},
		},
		{
			"drop at the output",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Dropped(ctx, ringkernel.OutputQueue) },
			ringkernel.Telemetry{MessagesDropped: 1, Output: ringkernel.QueueTelemetry{Dropped: 1}},
		},
		{
			"drop at an invalid queue",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Dropped(ctx, ringkernel.Queue(2)) },
			ringkernel.Telemetry{},
		},
		{
			"error",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Error(ctx, err) },
			ringkernel.Telemetry{Errors: 1, LastError: err},
		},
		{
			"nil error",
			func(ctx context.Context, k *ringkernel.Kernel) { k.Error(ctx, nil) },
			ringkernel.Telemetry{},
		},
		{
			"state",
			func(_ context.Context, k *ringkernel.Kernel) { setState(t, k, ringkernel.StateLaunched) },
			ringkernel.Telemetry{State: ringkernel.StateLaunched},
		},
		{
			"queue size",
			func(_ context.Context, k *ringkernel.Kernel) { k.SetQueueSize(ringkernel.OutputQueue, 4) },
			ringkernel.Telemetry{Output: ringkernel.QueueTelemetry{Size: 4}},
		},
		{
			"queue capacity",
			func(_ context.Context, k *ringkernel.Kernel) { k.SetQueueCapacity(ringkernel.InputQueue, 9) },
			ringkernel.Telemetry{Input: ringkernel.QueueTelemetry{Capacity: 9}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			k := w.Register("k")
			w.clock.Advance(time.Second)
			tt.call(t.Context(), k)
			tt.want.KernelID, tt.want.StartTime, tt.want.Time = "k", start, later
			if d := cmp.Diff(tt.want, w.telemetry(t, "k"), cmpopts.EquateErrors()); d != "" {
				t.Errorf("Telemetry (-want +got):\n%s", d)
			}
		})
	}
}

func TestLatencyOfZeroIsTheMinimum(t *testing.T) {
	for _, tt := range []struct {
		name      string
		latencies []time.Duration
		min, max  time.Duration
		total     time.Duration
	}{
		{"zero first", []time.Duration{0, 5, 3}, 0, 5, 8},
		{"zero last", []time.Duration{5, 3, 0}, 0, 5, 8},
		{"zero alone", []time.Duration{0}, 0, 0, 0},
		{"without zero", []time.Duration{5, 3}, 3, 5, 8},
		{"negative is zero", []time.Duration{5, -3}, 0, 5, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			k := w.Register("k")
			for _, d := range tt.latencies {
				k.Processed(t.Context(), d)
			}
			s := w.telemetry(t, "k")
			if s.MinLatency != tt.min || s.MaxLatency != tt.max || s.TotalLatency != tt.total {
				t.Errorf("min %d, max %d, total %d; want %d, %d, %d",
					s.MinLatency, s.MaxLatency, s.TotalLatency, tt.min, tt.max, tt.total)
			}
			if n := int64(len(tt.latencies)); s.MessagesProcessed != n {
				t.Errorf("processed %d, want %d", s.MessagesProcessed, n)
			}
		})
	}
}

func TestMinimumAndMaximumCoverAllGoroutines(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	done := make(chan struct{})
	for i := range 50 {
		go func() {
			k.Processed(t.Context(), time.Duration(100+i))
			done <- struct{}{}
		}()
	}
	for range 50 {
		<-done
	}
	if s := w.telemetry(t, "k"); s.MinLatency != 100 || s.MaxLatency != 149 || s.MessagesProcessed != 50 {
		t.Errorf("min %d, max %d of %d, want 100, 149 of 50", s.MinLatency, s.MaxLatency, s.MessagesProcessed)
	}
}

func TestInvalidQueuesAndNegativeSizesAreIgnored(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	k.SetQueueSize(ringkernel.Queue(99), 1)
	k.SetQueueCapacity(ringkernel.Queue(99), 1)
	k.ObserveQueue(ringkernel.Queue(99), func() (int, int) { return 1, 1 })
	k.SetQueueSize(ringkernel.InputQueue, -1)
	k.SetQueueCapacity(ringkernel.InputQueue, -1)
	want := ringkernel.Telemetry{KernelID: "k", StartTime: start, Time: start}
	if d := cmp.Diff(want, w.telemetry(t, "k"), cmpopts.EquateErrors()); d != "" {
		t.Errorf("Telemetry (-want +got):\n%s", d)
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
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
}

func TestOnlyRegisteredKernelsHaveTelemetry(t *testing.T) {
	w := newWorld(t)
	w.Register("b")
	w.Register("a").Sent(t.Context())
	if _, ok := w.Telemetry("c"); ok {
		t.Error("an unknown ID has telemetry")
	}
	w.Reset("c")
	w.Unregister("c")
	all := w.Summary().Kernels
	want := []ringkernel.Telemetry{w.telemetry(t, "a"), w.telemetry(t, "b")}
	if d := cmp.Diff(want, all, cmpopts.EquateErrors()); d != "" || all[0].MessagesSent != 1 {
		t.Errorf("Telemetry and Summary differ:\n%s", d)
	}
}
