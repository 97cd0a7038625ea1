// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// spanContext returns a context with a span, as a tracer's Start does.
func spanContext(ctx context.Context, flags trace.TraceFlags) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0xab, 15: 1}, SpanID: trace.SpanID{0xcd, 7: 1}, TraceFlags: flags,
	}))
}

// exemplars returns the exemplars of each metric by its name.
func exemplars(t *testing.T, reader sdkmetric.Reader) map[string][]metricdata.Exemplar[float64] {
	t.Helper()
	got := make(map[string][]metricdata.Exemplar[float64])
	for _, m := range collect(t, reader) {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, e := range data.DataPoints[0].Exemplars {
				got[m.Name] = append(got[m.Name], metricdata.Exemplar[float64]{Value: float64(e.Value), TraceID: e.TraceID, SpanID: e.SpanID})
			}
		case metricdata.Histogram[float64]:
			got[m.Name] = data.DataPoints[0].Exemplars
		}
	}
	return got
}

func recordEveryMetric(ctx context.Context, t *testing.T, s *Session) {
	t.Helper()
	err := s.Record(ctx, Packet{
		Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Memory: 1 << 20, Duration: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.AddPromptTokens(ctx, 5)
}

func TestSampledSpanIsTheExemplarOfEveryMetric(t *testing.T) {
	s, reader := openMeasured(t)
	recordEveryMetric(spanContext(t.Context(), trace.FlagsSampled), t, s)
	got := exemplars(t, reader)
	for _, m := range semconv.SplitInference() {
		if len(got[m.Name]) != 1 {
			t.Errorf("%s has %d exemplars", m.Name, len(got[m.Name]))
			continue
		}
		if e := got[m.Name][0]; trace.TraceID(e.TraceID).String() != "ab000000000000000000000000000001" ||
			trace.SpanID(e.SpanID).String() != "cd00000000000001" {
			t.Errorf("%s: exemplar of trace %x, span %x", m.Name, e.TraceID, e.SpanID)
		}
	}
	if e := got[semconv.PacketDuration.Name]; len(e) == 1 && e[0].Value != 0.001 {
		t.Errorf("the exemplar's duration is %v", e[0].Value)
	}
}

func TestUnsampledSpanIsNoExemplar(t *testing.T) {
	s, reader := openMeasured(t)
	recordEveryMetric(spanContext(t.Context(), 0), t, s)
	for name, e := range exemplars(t, reader) {
		if len(e) > 0 {
			t.Errorf("%s has exemplars: %v", name, e)
		}
	}
}

func TestRecordIgnoresCancellation(t *testing.T) {
	s, reader := openMeasured(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Record(ctx, Packet{Operation: "embedding", Device: CPU}); err != nil {
		t.Error(err)
	}
	if n := packetsCounted(t, reader); n != 1 || len(rowsOf(t, read(t, s.files.csv))) != 1 {
		t.Errorf("%d packets counted", n)
	}
}
