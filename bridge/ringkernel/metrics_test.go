// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// Counters start at 0, so that the first increase is visible. Unknown values aren't reported.
func TestEachMetricHasItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		use(t, w.Register("k"))
		w.Register("idle")
		pass(time.Second)
		want := map[string]float64{
			"ringkernel.messages.received{ringkernel.kernel.id=k}":                             2,
			"ringkernel.messages.sent{ringkernel.kernel.id=k}":                                 1,
			"ringkernel.messages.processed{ringkernel.kernel.id=k}":                            2,
			"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=input}":  1,
			"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=output}": 0,
			"ringkernel.message.duration{ringkernel.kernel.id=k}":                              2,
			"ringkernel.errors{error.type=timeout,ringkernel.kernel.id=k}":                     1,
			"ringkernel.queue.size{ringkernel.kernel.id=k,ringkernel.queue.name=input}":        2,
			"ringkernel.queue.capacity{ringkernel.kernel.id=k,ringkernel.queue.name=input}":    8,
			"ringkernel.uptime{ringkernel.kernel.id=k}":                                        1,
			"ringkernel.last_message.time{ringkernel.kernel.id=k}":                             float64(start.Unix()),

			"ringkernel.messages.received{ringkernel.kernel.id=idle}":                             0,
			"ringkernel.messages.sent{ringkernel.kernel.id=idle}":                                 0,
			"ringkernel.messages.processed{ringkernel.kernel.id=idle}":                            0,
			"ringkernel.messages.dropped{ringkernel.kernel.id=idle,ringkernel.queue.name=input}":  0,
			"ringkernel.messages.dropped{ringkernel.kernel.id=idle,ringkernel.queue.name=output}": 0,
			"ringkernel.uptime{ringkernel.kernel.id=idle}":                                        1,
		}
		for id, state := range map[string]string{"k": "active", "idle": "created"} {
			for _, s := range []string{"created", "launched", "active", "deactivated", "terminating", "terminated"} {
				want["ringkernel.kernel.status{ringkernel.kernel.id="+id+",ringkernel.kernel.state="+s+"}"] = 0
			}
			want["ringkernel.kernel.status{ringkernel.kernel.id="+id+",ringkernel.kernel.state="+state+"}"] = 1
		}
		if d := cmp.Diff(want, metrictest.Values(w.collect(t))); d != "" {
			t.Errorf("values (-want +got):\n%s", d)
		}
	})
}

// withSpan returns a context with a span.
func withSpan(t *testing.T, id byte, sampled bool) context.Context {
	t.Helper()
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, id}, SpanID: trace.SpanID{2, id}, TraceFlags: trace.TraceFlags(0).WithSampled(sampled),
	}))
}
