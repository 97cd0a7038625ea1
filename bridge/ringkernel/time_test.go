// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestUptimeStopsWhenAKernelTerminates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uptime = "ringkernel.uptime{ringkernel.kernel.id=k}"
		w := newWorld(t)
		k := w.Register("k")
		for range 4 {
			k.Processed(t.Context(), us)
		}
		pass(2 * time.Second)
		k.SetState(ringkernel.StateTerminated)
		pass(time.Hour)
		k.SetState(ringkernel.StateTerminated) // again
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
		k.SetState(ringkernel.StateCreated)
		pass(time.Second)
		if s := w.telemetry(t, "k"); s.Uptime() != time.Second || s.State != ringkernel.StateCreated || s.MessagesProcessed != 0 {
			t.Errorf("after a restart: %+v", s)
		}
		if got := metrictest.Values(w.collect(t))["ringkernel.messages.processed{ringkernel.kernel.id=k}"]; got != 5 {
			t.Errorf("after a restart, %v messages are counted, want 5", got)
		}
	})
}

// A kernel only reads the clock for its first message within 10 ms.
func TestLastMessageTimeIsAtMost10MsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := ringkernel.NewRuntime()
		a, b := rt.Register("a"), rt.Register("b")
		began := time.Now()
		for _, step := range []struct {
			after   time.Duration
			receive *ringkernel.Kernel
			a, b    time.Duration // the resulting times of the last messages; -1 for none
		}{
			{time.Millisecond, nil, -1, -1},
			{time.Millisecond, a, 2 * time.Millisecond, -1},
			{5 * time.Millisecond, a, 2 * time.Millisecond, -1},                      // within 10 ms
			{1 * time.Millisecond, b, 2 * time.Millisecond, 8 * time.Millisecond},    // b's first
			{5 * time.Millisecond, a, 13 * time.Millisecond, 8 * time.Millisecond},   // the next window
			{time.Hour, nil, 13 * time.Millisecond, 8 * time.Millisecond},            // nothing happens
			{0, b, 13 * time.Millisecond, time.Hour + 13*time.Millisecond},           // exact again
			{0, a, time.Hour + 13*time.Millisecond, time.Hour + 13*time.Millisecond}, // and for the other
		} {
			pass(step.after)
			if step.receive != nil {
				step.receive.Received(t.Context())
			}
			for id, want := range map[string]time.Duration{"a": step.a, "b": step.b} {
				s, _ := rt.Telemetry(id)
				if got := max(s.LastMessageTime.Sub(began), -1); got != want {
					t.Errorf("at %v: last message of %s %v after the start, want %v", time.Since(began), id, got, want)
				}
			}
		}
	})
}
