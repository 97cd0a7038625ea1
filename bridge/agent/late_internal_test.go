// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// The last flush can begin after a call has found the agent open.
func TestEventsAfterTheLastFlushAreCountedAsDropped(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	a, err := New("a", WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		WithSinks((*sink.CSV)(nil)), WithRunInterval(time.Hour))
	must.OK(t, err)
	must.OK(t, a.buffer.close())
	must.OK(t, a.Flush())
	a.MemoryRegistered(context.Background(), 1)
	if n := metrictest.Values(metrictest.Collect(t, reader))["nixl.telemetry.events.dropped{nixl.agent.name=a}"]; n != 1 {
		t.Errorf("%v events are dropped, want 1", n)
	}
	if n := a.RingTelemetry().DroppedStaging; n != 1 {
		t.Errorf("RingTelemetry has %d dropped events, want 1", n)
	}
}
