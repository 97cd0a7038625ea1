// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// withSpan returns a context with a span whose IDs end in id.
func withSpan(t *testing.T, id byte, sampled bool) context.Context {
	t.Helper()
	return spanContext(t.Context(), id, sampled)
}

func spanContext(ctx context.Context, id byte, sampled bool) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID{15: id},
		SpanID:     trace.SpanID{7: id},
		TraceFlags: trace.FlagsSampled.WithSampled(sampled),
	}))
}

// exemplarsOf returns the last byte of the trace ID of each exemplar, by metric.
func exemplarsOf(t *testing.T, ms []metricdata.Metrics) map[string][]byte {
	t.Helper()
	got := make(map[string][]byte)
	for _, m := range ms {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				for _, e := range p.Exemplars {
					if e.Value != 1 || len(e.SpanID) != 8 {
						t.Errorf("%s has exemplar %+v", m.Name, e)
					}
					got[m.Name] = append(got[m.Name], e.TraceID[15])
				}
			}
		case metricdata.Histogram[float64]:
			for _, e := range data.DataPoints[0].Exemplars {
				got[m.Name] = append(got[m.Name], e.TraceID[15])
			}
		case metricdata.ExponentialHistogram[float64]:
			for _, e := range data.DataPoints[0].Exemplars {
				got[m.Name] = append(got[m.Name], e.TraceID[15])
			}
		}
	}
	return got
}

func TestExemplarsHaveTheTraceIDOfTheSampledSpan(t *testing.T) {
	want := map[string][]byte{
		"ringkernel.messages.received": {1},
		"ringkernel.messages.sent":     {2},
		"ringkernel.messages.dropped":  {3},
		"ringkernel.message.duration":  {4, 5}, // in two buckets
		"ringkernel.errors":            {6},
	}
	for name, opts := range map[string][]ringkernel.ProducerOption{
		"explicit buckets": nil, "exponential buckets": {ringkernel.WithExponentialHistogram()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			reader := newReader(w.Runtime, opts...)
			k := w.Register("k")
			k.Received(withSpan(t, 1, true))
			k.Sent(withSpan(t, 2, true))
			k.Dropped(withSpan(t, 3, true), ringkernel.OutputQueue)
			k.Processed(withSpan(t, 4, true), time.Microsecond)
			k.Processed(withSpan(t, 5, true), time.Second)
			k.Error(withSpan(t, 6, true), codeError{"timeout"})
			if d := cmp.Diff(want, exemplarsOf(t, collect(t, reader))); d != "" {
				t.Errorf("exemplars (-want +got):\n%s", d)
			}
			if again := exemplarsOf(t, collect(t, reader)); len(again) > 0 {
				t.Errorf("the next collection has exemplars %v", again)
			}
			if d := cmp.Diff(want, exemplarsOf(t, w.collect(t))); d != "" {
				t.Errorf("another reader's exemplars (-want +got):\n%s", d)
			}
		})
	}
}

func TestExemplarHasTheValueAndTheTime(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	w.clock.Advance(time.Minute)
	k.Processed(withSpan(t, 9, true), 250*time.Millisecond)
	p := metrictest.Data[metricdata.Histogram[float64]](t, w.collect(t), "ringkernel.message.duration").DataPoints[0]
	want := []metricdata.Exemplar[float64]{{
		Time: start.Add(time.Minute), Value: 0.25,
		TraceID: []byte{15: 9}, SpanID: []byte{7: 9},
	}}
	if d := cmp.Diff(want, p.Exemplars); d != "" {
		t.Errorf("exemplars (-want +got):\n%s", d)
	}
}

func TestNoExemplarWithoutASampledSpan(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	for _, ctx := range []context.Context{context.Background(), t.Context(), withSpan(t, 1, false), nil} {
		k.Received(ctx)
		k.Processed(ctx, us)
		k.Error(ctx, codeError{"timeout"})
	}
	if got := exemplarsOf(t, w.collect(t)); len(got) > 0 {
		t.Errorf("exemplars %v, want none", got)
	}
}

func TestOnlyTheFirstExemplarWithin10MsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := ringkernel.NewRuntime()
		reader := newReader(rt)
		k := rt.Register("k")
		ctx := withSpan(t, 1, true)
		k.Sent(ctx)
		if n := testing.AllocsPerRun(100, func() { k.Sent(ctx) }); n != 0 {
			t.Errorf("an exemplar within 10 ms of another allocates %v times", n)
		}
		pass(20 * time.Millisecond)
		synctest.Wait()
		k.Sent(withSpan(t, 2, true))
		k.Sent(withSpan(t, 3, true))
		got := exemplarsOf(t, collect(t, reader))
		if d := cmp.Diff(map[string][]byte{"ringkernel.messages.sent": {2}}, got); d != "" {
			t.Errorf("exemplars (-want +got):\n%s", d)
		}
	})
}

var _ sdkmetric.Producer = (*ringkernel.Producer)(nil)

func TestExemplarFilterIsReadFromTheEnvironment(t *testing.T) {
	for filter, want := range map[string]map[string][]byte{
		"always_off":   {},
		" Always_Off ": {},
		"trace_based":  {"ringkernel.messages.sent": {1}, "ringkernel.message.duration": {2}},
	} {
		t.Setenv("OTEL_METRICS_EXEMPLAR_FILTER", filter)
		w := newWorld(t)
		k := w.Register("k")
		k.Sent(withSpan(t, 1, true))
		k.Processed(withSpan(t, 2, true), us)
		if d := cmp.Diff(want, exemplarsOf(t, w.collect(t))); d != "" {
			t.Errorf("filter %q: exemplars (-want +got):\n%s", filter, d)
		}
	}
}
