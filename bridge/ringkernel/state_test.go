// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestRegisterIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.Register("k")
		setState(t, k, ringkernel.StateActive)
		k.Sent(t.Context())
		pass(time.Second)
		if again := w.Register("k"); again != k {
			t.Error("Register of a registered ID returned another kernel")
		}
		if s := w.telemetry(t, "k"); s.MessagesSent != 1 || s.State != ringkernel.StateActive || !s.StartTime.Equal(start) {
			t.Errorf("Register of a registered ID changed it: %+v", s)
		}
	})
}

// A kernel can skip states and alternate between active and deactivated.
func TestKernelCannotReturnToAnEarlierState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = ringkernel.StateTerminated
		for from := range n + 1 {
			for to := range n + 1 {
				w := newWorld(t)
				k := w.Register("k")
				setState(t, k, from)
				err := k.SetState(to)
				allowed := to >= from || from == ringkernel.StateDeactivated && to == ringkernel.StateActive || from == n && to == ringkernel.StateCreated
				want := to
				if !allowed {
					want = from
				}
				if got := w.telemetry(t, "k").State; allowed != (err == nil) || got != want {
					t.Errorf("from %v to %v: %v, and the state is %v", from, to, err, got)
				}
			}
		}
		if err := newWorld(t).Register("k").SetState(n + 1); err == nil || !strings.Contains(err.Error(), `"k": State(6) is not a state`) {
			t.Errorf("an invalid state: %v", err)
		}
	})
}

// A kernel that restarts as soon as it terminates has no end.
func TestRestartedKernelHasNoEnd(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	for range 2000 {
		var terminating sync.WaitGroup
		terminating.Go(func() { setState(t, k, ringkernel.StateTerminated) })
		for w.telemetry(t, "k").State != ringkernel.StateTerminated {
			runtime.Gosched()
		}
		setState(t, k, ringkernel.StateCreated)
		terminating.Wait()
		if s := w.telemetry(t, "k"); !s.EndTime.IsZero() {
			t.Fatalf("the kernel is %v and ended at %v", s.State, s.EndTime)
		}
	}
}

func TestUptimeStopsWhenAKernelTerminates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uptime = "ringkernel.uptime{ringkernel.kernel.id=k}"
		w := newWorld(t)
		k := w.Register("k")
		for range 4 {
			k.Processed(t.Context(), us)
		}
		pass(2 * time.Second)
		setState(t, k, ringkernel.StateTerminated)
		pass(time.Hour)
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
		k.Processed(t.Context(), us)
		setState(t, k, ringkernel.StateCreated)
		pass(time.Second)
		if s := w.telemetry(t, "k"); s.Uptime() != time.Second || s.State != ringkernel.StateCreated || s.MessagesProcessed != 0 {
			t.Errorf("after a restart: %+v", s)
		}
		if got := metrictest.Values(w.collect(t))["ringkernel.messages.processed{ringkernel.kernel.id=k}"]; got != 5 {
			t.Errorf("after a restart, %v messages are counted, want 5", got)
		}
	})
}
