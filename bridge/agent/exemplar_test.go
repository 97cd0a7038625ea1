// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

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

func inSpan(ctx context.Context, flags trace.TraceFlags) (context.Context, trace.SpanContext) {
	s := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5}, TraceFlags: flags,
	})
	return trace.ContextWithSpanContext(ctx, s), s
}

// As with the SDK's default filter, only transfers within a sampled span become
// exemplars of the histograms.
func TestTransferWithinASampledSpanIsAnExemplar(t *testing.T) {
	sampled, want := inSpan(t.Context(), trace.FlagsSampled)
	unsampled, _ := inSpan(t.Context(), 0)
	w := newAgent(t)
	w.Transfer(unsampled, agent.Receive, 1, us, us)
	w.With(peer("p")).Transfer(sampled, agent.Transmit, 4096, 15*us, 120*us)
	ms := collect(t, w.reader)
	for name, value := range map[string]float64{
		semconv.TransferSize.Name: 4096, semconv.TransferDuration.Name: 120e-6, semconv.TransferPostDuration.Name: 15e-6,
		semconv.TransferThroughput.Name: 34133333,
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

// An exemplar is exported once.
func TestErrorWithinASampledSpanIsAnExemplar(t *testing.T) {
	sampled, want := inSpan(t.Context(), trace.FlagsSampled)
	unsampled, _ := inSpan(t.Context(), 0)
	w := newAgent(t)
	w.Error(sampled, agent.StatusBackend)
	w.Error(unsampled, agent.StatusCanceled)
	for _, exemplars := range []int{1, 0} {
		var got []metricdata.Exemplar[int64]
		for _, p := range metrictest.Data[metricdata.Sum[int64]](t, collect(t, w.reader), semconv.Errors.Name).DataPoints {
			got = append(got, p.Exemplars...)
		}
		if len(got) != exemplars {
			t.Fatalf("%d exemplars, want %d", len(got), exemplars)
		}
		if len(got) > 0 && trace.TraceID(got[0].TraceID) != want.TraceID() {
			t.Errorf("exemplar %+v", got[0])
		}
	}
}

func TestExemplarFilterIsReadFromTheEnvironment(t *testing.T) {
	sampled, _ := inSpan(t.Context(), trace.FlagsSampled)
	for filter, want := range map[string]int{"always_off": 0, "trace_based": 1, "": 1} {
		t.Setenv("OTEL_METRICS_EXEMPLAR_FILTER", filter)
		w := newAgent(t)
		w.Transfer(sampled, agent.Receive, 1, us, us)
		w.With(peer("p")).Error(sampled, agent.StatusBackend)
		ms := collect(t, w.reader)
		transfers := metrictest.Data[metricdata.Histogram[float64]](t, ms, semconv.TransferDuration.Name).DataPoints[0].Exemplars
		errors := 0
		for _, p := range metrictest.Data[metricdata.Sum[int64]](t, ms, semconv.Errors.Name).DataPoints {
			errors += len(p.Exemplars)
		}
		if len(transfers) != want || errors != want {
			t.Errorf("filter %q: %d exemplars of transfers and %d of errors, want %d", filter, len(transfers), errors, want)
		}
	}
}
