// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestStatesHaveNames(t *testing.T) {
	names := map[ringkernel.State]string{
		ringkernel.StateCreated:     "created",
		ringkernel.StateLaunched:    "launched",
		ringkernel.StateActive:      "active",
		ringkernel.StateDeactivated: "deactivated",
		ringkernel.StateTerminating: "terminating",
		ringkernel.StateTerminated:  "terminated",
		ringkernel.State(6):         "State(6)",
	}
	for s, want := range names {
		if got := s.String(); got != want {
			t.Errorf("State(%d).String() = %q, want %q", uint8(s), got, want)
		}
	}
}

func TestQueuesHaveNames(t *testing.T) {
	for q, want := range map[ringkernel.Queue]string{
		ringkernel.InputQueue: "input", ringkernel.OutputQueue: "output", ringkernel.Queue(2): "Queue(2)",
	} {
		if got := q.String(); got != want {
			t.Errorf("Queue(%d).String() = %q, want %q", uint8(q), got, want)
		}
	}
}

func TestStatusIsOneForTheCurrentStateOnly(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	all := []ringkernel.State{
		ringkernel.StateCreated, ringkernel.StateLaunched, ringkernel.StateActive,
		ringkernel.StateDeactivated, ringkernel.StateTerminating, ringkernel.StateTerminated,
	}
	for _, in := range all {
		setState(t, k, in)
		got := metrictest.Values(w.collect(t))
		for _, s := range all {
			series := fmt.Sprintf("ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state=%v}", s)
			want := 0.0
			if s == in {
				want = 1
			}
			if v, ok := got[series]; !ok || v != want {
				t.Errorf("in %v: %s = %v, want %v", in, series, v, want)
			}
		}
	}
}

func TestRegisterIsIdempotent(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	setState(t, k, ringkernel.StateActive)
	k.Sent(t.Context())
	w.clock.Advance(time.Second)
	if again := w.Register("k"); again != k {
		t.Error("Register of a registered ID returned another kernel")
	}
	if s := w.telemetry(t, "k"); s.MessagesSent != 1 || s.State != ringkernel.StateActive || s.StartTime != start {
		t.Errorf("Register of a registered ID changed it: %+v", s)
	}
}

func TestUptimeIsPerKernel(t *testing.T) {
	w := newWorld(t)
	w.Register("old")
	w.clock.Advance(time.Minute)
	w.Register("new")
	w.clock.Advance(time.Second)
	if up := w.telemetry(t, "old").Uptime(); up != time.Minute+time.Second {
		t.Errorf("uptime of old is %v, want 1m1s", up)
	}
	if up := w.telemetry(t, "new").Uptime(); up != time.Second {
		t.Errorf("uptime of new is %v, want 1s", up)
	}
}

func TestUnregisteredKernelHasCountersButNoGauges(t *testing.T) {
	w := newWorld(t, ringkernel.WithDerivedMetrics())
	k := w.Register("k")
	read := 0
	k.ObserveQueue(ringkernel.InputQueue, func() (int, int) { read++; return 0, 0 })
	k.Sent(t.Context())
	w.Unregister("unknown")
	w.Unregister("k")
	w.Unregister("k")
	if s := w.Summary(); s.KernelCount != 0 {
		t.Errorf("the summary has %d kernels, want none", s.KernelCount)
	}
	if _, ok := w.Telemetry("k"); ok {
		t.Error("Telemetry returned an unregistered kernel")
	}
	for series := range metrictest.Values(w.collect(t)) {
		switch series {
		case "ringkernel.messages.received{ringkernel.kernel.id=k}",
			"ringkernel.messages.sent{ringkernel.kernel.id=k}",
			"ringkernel.messages.processed{ringkernel.kernel.id=k}",
			"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=input}",
			"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=output}":
		default:
			t.Errorf("%s is reported for an unregistered kernel", series)
		}
	}
	if read > 0 {
		t.Error("the queue of an unregistered kernel was read")
	}
}

// A kernel can skip states and alternate between active and deactivated.
func TestKernelCannotReturnToAnEarlierState(t *testing.T) {
	const n = ringkernel.StateTerminated
	for from := range n + 1 {
		for to := range n + 1 {
			w := newWorld(t)
			k := w.Register("k")
			setState(t, k, from)
			err := k.SetState(to)
			allowed := to >= from || from == ringkernel.StateDeactivated && to == ringkernel.StateActive
			want := to
			if !allowed {
				want = from
			}
			if got := w.telemetry(t, "k").State; allowed != (err == nil) || got != want {
				t.Errorf("from %v to %v: %v, and the state is %v", from, to, err, got)
			}
		}
	}
}

func TestStateErrorNamesKernelAndStates(t *testing.T) {
	k := newWorld(t).Register("resize")
	setState(t, k, ringkernel.StateTerminated)
	err := k.SetState(ringkernel.StateCreated)
	for _, want := range []string{`"resize"`, "terminated", "created", "register"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that contains %s", err, want)
		}
	}
	if err := k.SetState(ringkernel.State(99)); err == nil || !strings.Contains(err.Error(), "State(99)") {
		t.Errorf("an invalid state: %v", err)
	}
}

func TestUptimeStopsWhenAKernelTerminates(t *testing.T) {
	const uptime = "ringkernel.uptime{ringkernel.kernel.id=k}"
	w := newWorld(t)
	k := w.Register("k")
	for range 4 {
		k.Processed(t.Context(), us)
	}
	w.clock.Advance(2 * time.Second)
	setState(t, k, ringkernel.StateTerminated)
	w.clock.Advance(time.Hour)
	setState(t, k, ringkernel.StateTerminated) // again
	s := w.telemetry(t, "k")
	if s.Uptime() != 2*time.Second || s.Throughput() != 2 || !s.EndTime.Equal(start.Add(2*time.Second)) {
		t.Errorf("uptime %v, throughput %v, ended %v", s.Uptime(), s.Throughput(), s.EndTime)
	}
	if got := metrictest.Values(w.collect(t))[uptime]; got != 2 {
		t.Errorf("%s = %v, want 2", uptime, got)
	}
	w.Reset("k")
	if up := w.telemetry(t, "k").Uptime(); up != 0 {
		t.Errorf("uptime %v after a reset, want 0", up)
	}
	w.Unregister("k")
	w.Register("k")
	w.clock.Advance(time.Second)
	if up := w.telemetry(t, "k").Uptime(); up != time.Second {
		t.Errorf("uptime %v after registering again, want 1s", up)
	}
}
