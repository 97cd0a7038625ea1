package agent_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Transfers of a sampled span are exemplars of the histograms, under the SDK's
// default filter; those of an unsampled span are not.
func TestTransferOfASampledSpanIsAnExemplar(t *testing.T) {
	span := func(flags trace.TraceFlags) (context.Context, trace.SpanContext) {
		s := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5}, TraceFlags: flags,
		})
		return trace.ContextWithSpanContext(t.Context(), s), s
	}
	sampled, want := span(trace.FlagsSampled)
	unsampled, _ := span(0)
	w := newAgent(t, "a")
	w.Transfer(unsampled, agent.Receive, 1, us, us)
	w.With(peer("p")).Transfer(sampled, agent.Transmit, 4096, 15*us, 120*us)
	ms := collect(t, w.reader)
	for name, value := range map[string]float64{
		semconv.TransferSize.Name: 4096, semconv.TransferDuration.Name: 120e-6, semconv.TransferPostDuration.Name: 15e-6,
	} {
		var got []metricdata.Exemplar[float64]
		for _, p := range metrictest.Data[metricdata.Histogram[float64]](t, ms, name).DataPoints {
			got = append(got, p.Exemplars...)
		}
		if len(got) != 1 {
			t.Errorf("%s has %d exemplars, want 1", name, len(got))
			continue
		}
		if e := got[0]; e.Value != value || trace.TraceID(e.TraceID) != want.TraceID() || trace.SpanID(e.SpanID) != want.SpanID() {
			t.Errorf("%s has exemplar %+v", name, e)
		}
	}
}
