// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const us = time.Microsecond

// start is the time at which a bubble of synctest starts.
var start = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// bubble runs a subtest in a bubble of synctest, in which time only passes in pass.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// pass lets time pass in a bubble, and waits for timers that are due then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// world is a Runtime and its reader.
type world struct {
	*ringkernel.Runtime
	reader *sdkmetric.ManualReader
}

func newWorld(t *testing.T, opts ...ringkernel.Option) *world {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	return &world{ringkernel.NewRuntime(append(opts, ringkernel.WithMeterProvider(provider))...), reader}
}

func (w *world) collect(t *testing.T) []metricdata.Metrics {
	t.Helper()
	return metrictest.Collect(t, w.reader)
}

// telemetry returns the snapshot of a registered kernel.
func (w *world) telemetry(t *testing.T, id string) ringkernel.Telemetry {
	t.Helper()
	s, ok := w.Telemetry(id)
	if !ok {
		t.Fatalf("kernel %q is not registered", id)
	}
	return s
}

// codeError names its own error type.
type codeError struct{ code string }

func (e codeError) Error() string     { return "code " + e.code + " at 0x7f3a" }
func (e codeError) ErrorType() string { return e.code }

// use records something for every metric.
func use(t *testing.T, k *ringkernel.Kernel) {
	t.Helper()
	k.SetState(ringkernel.StateActive)
	k.ObserveQueue(ringkernel.InputQueue, func() (int, int) { return 2, 8 })
	k.Received(t.Context())
	k.Received(t.Context())
	k.Sent(t.Context())
	k.Dropped(t.Context(), ringkernel.InputQueue)
	k.Processed(t.Context(), 3*time.Millisecond)
	k.Processed(t.Context(), 3*time.Millisecond)
	k.Error(t.Context(), codeError{"timeout"})
}
