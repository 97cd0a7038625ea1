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

func TestRegisterIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.Register("k")
		k.SetState(ringkernel.StateActive)
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
