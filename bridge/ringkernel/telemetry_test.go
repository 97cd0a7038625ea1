// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestTelemetryHasAllRecordedValues(t *testing.T) {
	w := newWorld(t)
	errLast := errors.New("out of luck")

	k := w.Register("worker")
	setState(t, k, ringkernel.StateActive)
	k.SetQueueSize(ringkernel.InputQueue, 3)
	k.SetQueueCapacity(ringkernel.InputQueue, 8)
	k.ObserveQueue(ringkernel.OutputQueue, func() (size, capacity int) { return 1, 16 })
	for range 5 {
		w.clock.Advance(time.Second)
		k.Received(t.Context())
	}
	k.Sent(t.Context())
	k.Sent(t.Context())
	k.Dropped(t.Context(), ringkernel.OutputQueue)
	k.Error(t.Context(), errors.New("first"))
	k.Error(t.Context(), errLast)
	k.Processed(t.Context(), 30*time.Microsecond)
	k.Processed(t.Context(), 10*time.Microsecond)
	k.Processed(t.Context(), 20*time.Microsecond)
	w.clock.Advance(time.Second)

	want := ringkernel.Telemetry{
		KernelID:          "worker",
		State:             ringkernel.StateActive,
		MessagesReceived:  5,
		MessagesSent:      2,
		MessagesProcessed: 3,
		MessagesDropped:   1,
		Errors:            2,
		StartTime:         start,
		LastMessageTime:   start.Add(5 * time.Second),
		Time:              start.Add(6 * time.Second),
		Input:             ringkernel.QueueTelemetry{Size: 3, Capacity: 8},
		Output:            ringkernel.QueueTelemetry{Size: 1, Capacity: 16, Dropped: 1},
		TotalLatency:      60 * time.Microsecond,
		MinLatency:        10 * time.Microsecond,
		MaxLatency:        30 * time.Microsecond,
		P99Latency:        30 * time.Microsecond,
		LastError:         errLast,
	}
	got := w.telemetry(t, "worker")
	if off := got.P50Latency - 20*time.Microsecond; off.Abs() > 120*time.Nanosecond {
		t.Errorf("median %v, want 20µs within 0.6%%", got.P50Latency)
	}
	want.P50Latency = got.P50Latency
	if d := cmp.Diff(want, got, cmpopts.EquateErrors()); d != "" {
		t.Errorf("Telemetry (-want +got):\n%s", d)
	}
}

func TestTelemetryOfANewKernelIsZero(t *testing.T) {
	w := newWorld(t)
	w.Register("fresh")
	want := ringkernel.Telemetry{KernelID: "fresh", StartTime: start, Time: start}
	if d := cmp.Diff(want, w.telemetry(t, "fresh"), cmpopts.EquateErrors()); d != "" {
		t.Errorf("Telemetry (-want +got):\n%s", d)
	}
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

func TestDerivedMetricsAreReportedOnlyOnRequest(t *testing.T) {
	const (
		throughput = "ringkernel.throughput{ringkernel.kernel.id=k}"
		errorRate  = "ringkernel.error_rate{ringkernel.kernel.id=k}"
	)
	work := func(w *world) map[string]float64 {
		k := w.Register("k")
		for range 6 {
			k.Processed(t.Context(), time.Millisecond)
		}
		for range 3 {
			k.Error(t.Context(), errors.New("no"))
		}
		w.clock.Advance(2 * time.Second)
		return metrictest.Values(w.collect(t))
	}
	on := work(newWorld(t, ringkernel.WithDerivedMetrics()))
	if on[throughput] != 3 || on[errorRate] != 0.5 {
		t.Errorf("throughput %v and error rate %v, want 3 and 0.5", on[throughput], on[errorRate])
	}
	off := work(newWorld(t))
	for _, name := range []string{throughput, errorRate} {
		if v, ok := off[name]; ok {
			t.Errorf("%s = %v is reported by default", name, v)
		}
	}
}
