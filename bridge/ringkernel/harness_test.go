// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

const us = time.Microsecond

var start = metrictest.Start

// world is a Runtime with its clock and a reader.
type world struct {
	*ringkernel.Runtime
	clock  *metrictest.Clock
	reader *sdkmetric.ManualReader
}

// newWorld returns a Runtime with a manual clock and opts.
func newWorld(t *testing.T, opts ...ringkernel.Option) *world {
	t.Helper()
	w := &world{clock: metrictest.NewClock()}
	w.Runtime = ringkernel.NewRuntime(append([]ringkernel.Option{ringkernel.WithClock(w.clock.Now)}, opts...)...)
	w.reader = newReader(w.Runtime)
	return w
}

// newReader returns a reader of a Runtime.
func newReader(rt *ringkernel.Runtime, opts ...ringkernel.ProducerOption) *sdkmetric.ManualReader {
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(rt.NewProducer(opts...)))
	sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	return reader
}

func collect(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	return metrictest.Collect(t, reader, ringkernel.ScopeName)
}

func (w *world) collect(t *testing.T) []metricdata.Metrics {
	t.Helper()
	return collect(t, w.reader)
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

// setState sets a state that the kernel can change to.
func setState(t *testing.T, k *ringkernel.Kernel, s ringkernel.State) {
	t.Helper()
	if err := k.SetState(s); err != nil {
		t.Error(err)
	}
}

// use records something for every metric.
func use(t *testing.T, w *world, id string) {
	t.Helper()
	k := w.Register(id)
	setState(t, k, ringkernel.StateActive)
	k.SetQueueSize(ringkernel.InputQueue, 2)
	k.SetQueueCapacity(ringkernel.InputQueue, 8)
	k.Received(t.Context())
	k.Received(t.Context())
	k.Sent(t.Context())
	k.Dropped(t.Context(), ringkernel.InputQueue)
	k.Processed(t.Context(), 3*time.Millisecond)
	k.Processed(t.Context(), 3*time.Millisecond)
	k.Error(t.Context(), codeError{"timeout"})
	w.clock.Advance(time.Second)
}
