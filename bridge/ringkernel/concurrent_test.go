// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"sync"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Several goroutines record on one kernel, while others take snapshots, collect, reset, register and
// unregister other kernels, and open and close other Runtimes. No count is lost, and no snapshot has a
// negative count.
func TestConcurrentUseLosesNothing(t *testing.T) {
	const writers, each = 8, 2000
	reader := sdkmetric.NewManualReader()
	provider := ringkernel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	rt := ringkernel.NewRuntime(provider)
	k := rt.Register("k")

	var writing, others sync.WaitGroup
	done := make(chan struct{})
	for g := range writers {
		writing.Go(func() {
			for i := range each {
				k.Received(t.Context())
				rt.Kernel("k").Received(t.Context())
				k.Sent(t.Context())
				k.Dropped(t.Context(), ringkernel.InputQueue)
				k.Processed(t.Context(), time.Duration(i))
				k.SetState(ringkernel.State(i % 7)) // the last is invalid
				if i%100 == 0 {
					k.Error(t.Context(), codeError{string(rune('a' + g))})
				}
			}
		})
	}
	for _, f := range []func(){
		func() { checkSnapshot(t, rt) },
		func() { metrictest.Collect(t, reader) },
		func() { rt.Reset() },
		func() { use(t, rt.Register("other")); rt.Unregister("other") },
		func() {
			another := ringkernel.NewRuntime(provider)
			use(t, another.Register("another"))
			must.OK(t, another.Close())
		},
	} {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f()
				}
			}
		})
	}
	writing.Wait()
	close(done)
	others.Wait()

	got := metrictest.Values(metrictest.Collect(t, reader))
	for series, want := range map[string]float64{
		"ringkernel.messages.received{ringkernel.kernel.id=k}":                            2 * writers * each,
		"ringkernel.messages.sent{ringkernel.kernel.id=k}":                                writers * each,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k,ringkernel.queue.name=input}": writers * each,
		"ringkernel.messages.processed{ringkernel.kernel.id=k}":                           writers * each,
		"ringkernel.message.duration{ringkernel.kernel.id=k}":                             writers * each,
		"ringkernel.errors{error.type=a,ringkernel.kernel.id=k}":                          each / 100,
	} {
		if got[series] != want {
			t.Errorf("%s = %v, want %v", series, got[series], want)
		}
	}
}

func checkSnapshot(t *testing.T, rt *ringkernel.Runtime) {
	t.Helper()
	for _, s := range rt.Summary().Kernels {
		least := min(s.MessagesReceived, s.MessagesSent, s.MessagesProcessed, s.MessagesDropped, s.Errors, int64(s.TotalLatency))
		if least < 0 || s.MinLatency > s.MaxLatency || s.MessagesProcessed == 0 && s.MaxLatency > 0 {
			t.Errorf("a count is negative, or latencies don't fit: %+v", s)
		}
	}
}
