// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// After a reset, the next message reads the clock even within 10 ms.
func TestResetRestartsSnapshotsButNotCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"a", "b", "c"} {
			k := w.Register(id)
			use(t, k)
			k.Dropped(t.Context(), ringkernel.OutputQueue)
			k.Processed(t.Context(), us)
			k.Processed(t.Context(), time.Minute)
		}
		pass(time.Minute)
		metrics := metrictest.Values(w.collect(t))
		fresh := func(id string) ringkernel.Telemetry {
			return ringkernel.Telemetry{
				KernelID: id, State: ringkernel.StateActive, InputSize: 2, InputCapacity: 8, StartTime: time.Now(), Time: time.Now(),
			}
		}
		want := []ringkernel.Telemetry{fresh("a"), fresh("b"), w.telemetry(t, "c")}
		w.Reset("a", "b", "unknown")
		if d := cmp.Diff(want, w.Summary().Kernels, cmpopts.EquateErrors()); d != "" {
			t.Errorf("after Reset of a and b (-want +got):\n%s", d)
		}
		for _, id := range []string{"a", "b"} {
			for _, gauge := range []string{"uptime", "throughput", "error_rate"} {
				metrics["ringkernel."+gauge+"{ringkernel.kernel.id="+id+"}"] = 0
			}
			delete(metrics, "ringkernel.last_message.time{ringkernel.kernel.id="+id+"}")
		}
		if d := cmp.Diff(metrics, metrictest.Values(w.collect(t))); d != "" {
			t.Errorf("metrics after Reset of a and b (-want +got):\n%s", d)
		}
		w.Kernel("a").Received(t.Context())
		want[2] = fresh("c")
		w.Reset()
		if d := cmp.Diff(want, w.Summary().Kernels, cmpopts.EquateErrors()); d != "" {
			t.Errorf("after Reset of all (-want +got):\n%s", d)
		}

		pass(time.Millisecond)
		use(t, w.Kernel("a"))
		pass(1999 * time.Millisecond)
		next := fresh("a")
		next.StartTime, next.LastMessageTime = start.Add(time.Minute), start.Add(time.Minute+time.Millisecond)
		next.MessagesReceived, next.MessagesSent, next.MessagesProcessed, next.MessagesDropped, next.InputDropped = 2, 1, 2, 1, 1
		next.TotalLatency, next.MinLatency, next.MaxLatency = 6*time.Millisecond, 3*time.Millisecond, 3*time.Millisecond
		next.Errors, next.LastError = 1, codeError{"timeout"}
		if d := cmp.Diff(next, w.telemetry(t, "a"), cmpopts.EquateErrors()); d != "" {
			t.Errorf("messages after the reset (-want +got):\n%s", d)
		}
	})
}

func TestSummaryHasAllKernelsAndTheirTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		utilization := 0.25
		w := newWorld(t, ringkernel.WithGPUUtilization(func() (float64, bool) { return utilization, utilization > 0 }))
		pass(2 * time.Second) // the Runtime is older than its kernels
		b, a := w.Register("b"), w.Register("a")
		a.SetState(ringkernel.StateActive)
		for range 26 {
			a.Processed(t.Context(), 2*time.Millisecond)
			b.Processed(t.Context(), time.Millisecond)
		}
		b.Processed(t.Context(), 4*time.Millisecond)
		a.Error(t.Context(), errors.New("no"))
		a.Error(t.Context(), errors.New("no"))
		b.Dropped(t.Context(), ringkernel.InputQueue)
		pass(4 * time.Second)
		const want = `=== Telemetry @ 946684806 ===
Kernels: 2
Messages: 53
Throughput: 13.2 msg/s
Errors: 2
Dropped: 1
GPU: 25.0%
  a: active, 26 processed, 6.5 msg/s, latency 2ms avg, 2ms min, 2ms max, 2 errors
  b: created, 27 processed, 6.8 msg/s, latency 1.111111ms avg, 1ms min, 4ms max, 0 errors
`
		s := w.Summary()
		if d := cmp.Diff(want, s.String()); d != "" {
			t.Errorf("text (-want +got):\n%s", d)
		}
		if s.Uptime != 6*time.Second {
			t.Errorf("uptime %v", s.Uptime)
		}
		if d := cmp.Diff([]ringkernel.Telemetry{w.telemetry(t, "a"), w.telemetry(t, "b")}, s.Kernels, cmpopts.EquateErrors()); d != "" {
			t.Errorf("kernels (-want +got):\n%s", d)
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

func TestSummaryAsJSONHasNamesOfStatesAndTextsOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		use(t, w.Register("k"))
		w.Register("idle")
		pass(2 * time.Second)
		b, err := json.Marshal(w.Summary())
		must.OK(t, err)
		var got struct {
			TotalMessages int
			Kernels       []struct {
				KernelID, State, LastError    string
				Uptime, Throughput, ErrorRate float64
			}
		}
		must.OK(t, json.Unmarshal(b, &got))
		text := fmt.Sprintf("%+v", got)
		if want := "{TotalMessages:2 Kernels:[{KernelID:idle State:created LastError: Uptime:2 Throughput:0 ErrorRate:0} " +
			"{KernelID:k State:active LastError:code timeout at 0x7f3a Uptime:2 Throughput:1 ErrorRate:0.5}]}"; text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	})
}
