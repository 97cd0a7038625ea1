// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestCollectorCountsAcceptedAndRefusedPoints(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "agent", ringbuf.V4, 16), write(1, 1, 1)...)
	telemetry := componenttest.NewTelemetry()
	defer func() {
		if err := telemetry.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	h := newHarness(t, dir, often)
	h.settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	h.settings.Logger = zap.New(h.lines)
	down := make(chan struct{})
	h.consume = backend(down)
	h.start()
	h.log("next consumer rejected the metrics")
	close(down)
	taken := int64(h.next().DataPointCount())
	must.OK(t, h.stop())
	for len(h.batches) > 0 {
		taken += int64((<-h.batches).DataPointCount())
	}

	accepted, refused := counted(t, telemetry, h, "accepted"), counted(t, telemetry, h, "refused")
	if accepted != taken || refused == 0 {
		t.Errorf("%d points accepted and %d refused, want %d and at least 1", accepted, refused, taken)
	}
	spans := telemetry.SpanRecorder.Ended()
	if name := "receiver/" + h.settings.ID.String() + "/MetricsReceived"; len(spans) == 0 || spans[0].Name() != name {
		t.Errorf("%d spans, want spans named %s", len(spans), name)
	}
}

// counted returns the Collector's count of accepted or refused points.
func counted(t *testing.T, telemetry *componenttest.Telemetry, h *harness, what string) int64 {
	t.Helper()
	m, err := telemetry.GetMetric("otelcol_receiver_" + what + "_metric_points")
	must.OK(t, err)
	want := attribute.NewSet(attribute.String("receiver", h.settings.ID.String()), attribute.String("transport", "shm"))
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints { //nolint:errcheck // or the test panics
		if dp.Attributes.Equals(&want) {
			return dp.Value
		}
	}
	t.Fatalf("%s has no point with %v", m.Name, want)
	return 0
}
