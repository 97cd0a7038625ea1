// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package bridge_test tests what the packages whose metrics are instruments of a
// MeterProvider have in common: they report the metrics of the catalog, and the program's
// settings apply to each of them.
package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// pkg is a package under test.
type pkg struct {
	metrics []semconv.Metric
	// start returns a function that records something for every metric, in series that
	// depend on n, and one that closes what records.
	start func(*testing.T, metric.MeterProvider) (record func(ctx context.Context, n int), stop func() error)
	// synchronous reports whether a metric's instrument isn't observable.
	synchronous func(name string) bool
}

func packages() map[string]pkg {
	return map[string]pkg{
		"ringkernel": {semconv.RingKernel(), startKernels, func(name string) bool {
			return name == semconv.KernelMessageDuration.Name || name == semconv.KernelErrors.Name
		}},
		"agent": {
			slices.DeleteFunc(semconv.NIXL(), func(m semconv.Metric) bool {
				return strings.HasPrefix(m.Name, "nixl.telemetry.ring.") || m.Name == semconv.Events.Name || m.Name == semconv.TelemetryEventsUnknown.Name
			}), startAgents,
			func(name string) bool {
				return !strings.Contains(name, ".last") && name != semconv.AgentUp.Name && name != semconv.MemoryUsage.Name
			},
		},
		"session": {semconv.SplitInference(), startSession, func(string) bool { return true }},
	}
}

func startKernels(_ *testing.T, p metric.MeterProvider) (func(context.Context, int), func() error) {
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(p))
	return func(ctx context.Context, n int) {
		k := rt.Register(fmt.Sprint("kernel ", n))
		k.ObserveQueue(ringkernel.InputQueue, func() (int, int) { return 2, 8 })
		k.Received(ctx)
		k.Sent(ctx)
		k.Dropped(ctx, ringkernel.InputQueue)
		k.Processed(ctx, 3*time.Millisecond)
		k.Error(ctx, context.Canceled)
	}, rt.Close
}

func startAgents(t *testing.T, p metric.MeterProvider) (func(context.Context, int), func() error) {
	agents := make(map[int]*agent.Agent)
	return func(ctx context.Context, n int) {
		if agents[n] == nil {
			a, err := agent.New(fmt.Sprint("agent ", n), agent.WithMeterProvider(p))
			must.OK(t, err)
			t.Cleanup(func() { _ = a.Close() })
			agents[n] = a
		}
		a := agents[n]
		a.Transfer(ctx, agent.Transmit, 4096, 15*time.Microsecond, 120*time.Microsecond)
		a.MemoryRegistered(ctx, 300)
		a.MemoryDeregistered(ctx, 100)
		a.Error(ctx, semconv.ErrorBackend)
		a.EventsDropped(ctx, 3)
		a.Event(ctx, ringbuf.CategoryBackend, "retries", 2)
	}, func() error { return agents[0].Close() }
}

func startSession(t *testing.T, p metric.MeterProvider) (func(context.Context, int), func() error) {
	s, err := session.Open(t.TempDir(), session.WithMeterProvider(p))
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return func(ctx context.Context, n int) {
		if err := s.Record(ctx, session.Packet{
			Operation: "expert_ffn", Expert: fmt.Sprint(n), Device: fmt.Sprint("npu", n), DeviceTarget: session.CPU, Memory: 1, Err: context.Canceled,
		}); err != nil {
			t.Error(err)
		}
		s.AddPromptTokens(ctx, 7)
		s.AddGeneratedTokens(ctx, 1)
	}, s.Close
}

// each runs a test for each package.
func each(t *testing.T, test func(*testing.T, pkg)) {
	t.Helper()
	for name, p := range packages() {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

// all fails the test unless the metrics are those of the package.
func (p *pkg) all(t *testing.T, got []metricdata.Metrics) {
	t.Helper()
	var names []string
	for _, m := range got {
		names = append(names, m.Name)
	}
	p.named(t, names)
}

func (p *pkg) named(t *testing.T, names []string) {
	t.Helper()
	var want []string
	for _, m := range p.metrics {
		want = append(want, m.Name)
	}
	slices.Sort(want)
	slices.Sort(names)
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("metrics (-catalog +collected):\n%s", d)
	}
}

// shape is what the catalog defines.
type shape struct {
	Kind        semconv.Kind
	Number      semconv.Number
	Unit, Text  string
	Bounds      []float64
	Temporality metricdata.Temporality
}

func shapeOf(t *testing.T, m metricdata.Metrics) shape {
	t.Helper()
	s := shape{Kind: semconv.Gauge, Number: semconv.Int64, Unit: m.Unit, Text: m.Description}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		s.Kind, s.Temporality = semconv.UpDownCounter, data.Temporality
		if data.IsMonotonic {
			s.Kind = semconv.Counter
		}
	case metricdata.Gauge[int64]:
	case metricdata.Gauge[float64]:
		s.Number = semconv.Float64
	case metricdata.Histogram[float64]:
		s.Kind, s.Number, s.Temporality, s.Bounds = semconv.Histogram, semconv.Float64, data.Temporality, data.DataPoints[0].Bounds
	default:
		t.Errorf("%s is a %T", m.Name, data)
	}
	return s
}

func TestMetricsAreThoseOfTheCatalog(t *testing.T) {
	each(t, func(t *testing.T, p pkg) {
		reader := sdkmetric.NewManualReader()
		record, _ := p.start(t, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		record(t.Context(), 0)
		ms := metrictest.Collect(t, reader)
		p.all(t, ms)
		for _, d := range p.metrics {
			m := metrictest.Find(t, ms, d.Name)
			want := shape{Kind: d.Kind, Number: d.Number, Unit: d.Unit, Text: d.Description, Bounds: d.Bounds}
			if d.Kind != semconv.Gauge {
				want.Temporality = metricdata.CumulativeTemporality
			}
			if d := cmp.Diff(want, shapeOf(t, m)); d != "" {
				t.Errorf("%s (-catalog +collected):\n%s", m.Name, d)
			}
			metrictest.EachPoint(m, func(set attribute.Set, _ float64) {
				for _, key := range d.Attributes {
					if !set.HasValue(attribute.Key(key)) {
						t.Errorf("%s has no %s", m.Name, key)
					}
				}
				for _, attr := range set.ToSlice() {
					if key := string(attr.Key); !slices.Contains(d.Attributes, key) && !slices.Contains(d.Conditional, key) && key != semconv.AgentName {
						t.Errorf("%s has the attribute %s", m.Name, key)
					}
				}
			})
		}
	})
}

// By default, the SDK's filter selects what happens within a sampled span as exemplars.
func TestSampledSpanIsTheExemplarOfSynchronousInstruments(t *testing.T) {
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	each(t, func(t *testing.T, p pkg) {
		reader := sdkmetric.NewManualReader()
		record, _ := p.start(t, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		record(trace.ContextWithSpanContext(t.Context(), span), 0)
		for _, m := range metrictest.Collect(t, reader) {
			data, traceID := fmt.Sprintf("%+v", m.Data), span.TraceID()
			if has := strings.Contains(data, fmt.Sprintf("TraceID:%d", traceID[:])); has != p.synchronous(m.Name) {
				t.Errorf("%s has an exemplar: %v\n%s", m.Name, has, data)
			}
		}
	})
}

// global is the reader of the global MeterProvider, which can only be set once.
var global = sdkmetric.NewManualReader()

// The global MeterProvider can be set later, as libraries need.
func TestGlobalMeterProviderIsTheDefault(t *testing.T) {
	var records []func(context.Context, int)
	var all pkg
	start := func(provider metric.MeterProvider) {
		for _, p := range packages() {
			record, _ := p.start(t, provider)
			records = append(records, record)
			all.metrics = append(all.metrics, p.metrics...)
		}
	}
	start(nil)
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(global)))
	start(nil)
	for i, record := range records {
		record(t.Context(), i)
	}
	ms := metrictest.Collect(t, global)
	all.metrics = all.metrics[:len(all.metrics)/2]
	all.all(t, ms)
	for _, m := range ms {
		if n := len(metrictest.Values([]metricdata.Metrics{m})); n < 2 && m.Name != semconv.Tokens.Name {
			t.Errorf("%s has %d series, want 2", m.Name, n)
		}
	}
}

// rejecting is a MeterProvider that rejects histograms and callbacks.
type rejecting struct{ metric.MeterProvider }

func (r rejecting) Meter(name string, opts ...metric.MeterOption) metric.Meter {
	return rejectingMeter{r.MeterProvider.Meter(name, opts...)}
}

type rejectingMeter struct{ metric.Meter }

func (rejectingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errors.New("no histograms")
}

func (rejectingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errors.New("no callbacks")
}

// The packages work without rejected instruments, and the other ones report their metrics.
func TestRejectedInstrumentsAreReported(t *testing.T) {
	each(t, func(t *testing.T, p pkg) {
		errs, reader := metrictest.Handled(t), sdkmetric.NewManualReader()
		record, _ := p.start(t, rejecting{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
		record(t.Context(), 0)
		var want []string
		for _, m := range p.metrics {
			switch {
			case m.Kind == semconv.Histogram:
				want = append(want, "create the instrument of "+m.Name+": no histograms")
			case !p.synchronous(m.Name):
				want = append(want, "observe instruments: no callbacks")
			}
		}
		slices.Sort(want)
		if d := cmp.Diff(slices.Compact(want), slices.Sorted(slices.Values(errs()))); d != "" {
			t.Errorf("errors (-want +got):\n%s", d)
		}
		p.metrics = slices.DeleteFunc(p.metrics, func(m semconv.Metric) bool { return m.Kind == semconv.Histogram || !p.synchronous(m.Name) })
		p.all(t, metrictest.Collect(t, reader))
	})
}
