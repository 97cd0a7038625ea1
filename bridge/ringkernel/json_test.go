// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	must.OK(t, err)
	return string(b)
}

func TestSummaryMarshalsToJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ringkernel.WithGPUUtilization(func() (float64, bool) { return 0.25, true }))
		k := w.Register("worker")
		setState(t, k, ringkernel.StateActive)
		k.ObserveQueue(ringkernel.InputQueue, func() (int, int) { return 3, 8 })
		pass(time.Second)
		k.Received(t.Context())
		k.Sent(t.Context())
		k.Dropped(t.Context(), ringkernel.OutputQueue)
		k.Error(t.Context(), errors.New("out of luck"))
		k.Processed(t.Context(), 20*time.Millisecond)
		k.Processed(t.Context(), 20*time.Millisecond)
		pass(time.Second)
		setState(t, k, ringkernel.StateTerminated)
		w.collect(t)
		pass(time.Second)

		const want = `{
  "time": "2000-01-01T00:00:03Z",
  "uptime": 3,
  "kernel_count": 1,
  "total_messages": 2,
  "total_errors": 1,
  "total_dropped": 1,
  "aggregate_throughput": 1,
  "gpu_utilization": 0.25,
  "per_kernel": {
    "worker": {
      "kernel_id": "worker",
      "state": "terminated",
      "messages_received": 1,
      "messages_sent": 1,
      "messages_processed": 2,
      "messages_dropped": 1,
      "errors": 1,
      "last_error": "out of luck",
      "start_time": "2000-01-01T00:00:00Z",
      "end_time": "2000-01-01T00:00:02Z",
      "last_message_time": "2000-01-01T00:00:01Z",
      "uptime": 2,
      "throughput": 1,
      "error_rate": 0.5,
      "total_latency": 0.04,
      "avg_latency": 0.02,
      "min_latency": 0.02,
      "max_latency": 0.02,
      "input": {
        "size": 3,
        "capacity": 8,
        "messages_dropped": 0
      },
      "output": {
        "size": 0,
        "capacity": 0,
        "messages_dropped": 1
      }
    }
  }
}`
		if d := cmp.Diff(want, toJSON(t, w.Summary())); d != "" {
			t.Errorf("JSON (-want +got):\n%s", d)
		}
	})
}

func TestUnknownTimesAreNullInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var disabled *ringkernel.Runtime
		const want = `{
  "time": null,
  "uptime": 0,
  "kernel_count": 0,
  "total_messages": 0,
  "total_errors": 0,
  "total_dropped": 0,
  "aggregate_throughput": 0,
  "gpu_utilization": null,
  "per_kernel": {}
}`
		if d := cmp.Diff(want, toJSON(t, disabled.Summary())); d != "" {
			t.Errorf("a nil Runtime's JSON (-want +got):\n%s", d)
		}
		w := newWorld(t)
		w.Register("fresh")
		var fresh map[string]any
		must.OK(t, json.Unmarshal([]byte(toJSON(t, w.telemetry(t, "fresh"))), &fresh))
		for _, key := range []string{"last_error", "last_message_time", "end_time"} {
			if v, ok := fresh[key]; !ok || v != nil {
				t.Errorf("%s of a fresh kernel is %v, want null", key, v)
			}
		}
		if fresh["state"] != "created" {
			t.Errorf("state is %v, want created", fresh["state"])
		}
	})
}
