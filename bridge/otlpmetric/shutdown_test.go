// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpmetric_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestLastExportIsCompleteBeforeOrAfterTheSessionIsClosed(t *testing.T) {
	for name, inOrder := range map[string]func(provider, session func()){
		"provider first": func(provider, session func()) { provider(); session() },
		"session first":  func(provider, session func()) { session(); provider() },
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			b := startBackend(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+b.address)
			provider := newProvider(t)
			s, err := session.Open(t.TempDir(), session.WithMeterProvider(provider))
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				packet := session.Packet{Operation: "expert_ffn", Device: session.IGPU, DeviceTarget: session.CPU, Memory: 1, Duration: 1}
				if err := s.Record(t.Context(), packet); err != nil {
					t.Fatal(err)
				}
			}
			s.AddGeneratedTokens(t.Context(), 5)
			inOrder(func() { shutdown(t, provider) }, func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			got := b.newest(t)
			for _, m := range semconv.SplitInference() {
				if got[m.Name] == nil {
					t.Errorf("%s is missing in the last export", m.Name)
				}
			}
			if n := got[semconv.Packets.Name].GetSum().GetDataPoints()[0].GetAsInt(); n != 5 {
				t.Errorf("the last export has %d packets", n)
			}
		})
	}
}

// A canceled context is usually the program's own, canceled by a signal. A context whose
// deadline has passed means that the backend was too slow.
func TestCanceledContextIsReportedWithAdvice(t *testing.T) {
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		t.Run(want.Error(), func(t *testing.T) {
			clearEnv(t)
			provider := newProvider(t, otlpmetric.WithExporter(&exporter{}))
			if _, err := provider.Meter("test").Int64ObservableCounter("things", observeBy(func() {})); err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(time.Hour)
			if errors.Is(want, context.DeadlineExceeded) {
				deadline = time.Time{}
			}
			ctx, cancel := context.WithDeadline(t.Context(), deadline)
			cancel()
			err := provider.Shutdown(ctx)
			if !errors.Is(err, want) {
				t.Fatalf("error %v, want %v", err, want)
			}
			if advice := strings.Contains(err.Error(), "pass Shutdown a new context"); advice != errors.Is(want, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A producer's error affects neither its own metrics nor those of instruments.
func TestProducersAreInEveryExport(t *testing.T) {
	clearEnv(t)
	var mu sync.Mutex
	var handled []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		handled = append(handled, err)
	}))
	t.Cleanup(func() { otel.SetErrorHandler(before) })

	b := startBackend(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+b.address)
	export(t, otlpmetric.WithProducers(producer{"produced.one", nil}, producer{"produced.two", errTorn}))
	got := b.newest(t)
	for _, name := range []string{"things", "produced.one", "produced.two"} {
		if got[name] == nil {
			t.Errorf("%s is missing in the export", name)
		}
	}
	if err := errors.Join(handled...); !errors.Is(err, errTorn) || !strings.Contains(err.Error(), "otlpmetric_test.producer") {
		t.Errorf("handled errors: %v", err)
	}
}

var errTorn = errors.New("a ring is torn")

// producer returns a gauge and an error.
type producer struct {
	name string
	err  error
}

func (p producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	return []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{{
		Name: p.name, Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Time: time.Now(), Value: 1}}},
	}}}}, p.err
}

// exporter counts its calls.
type exporter struct{ exports, shutdowns int }

func (*exporter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

func (*exporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (e *exporter) Export(ctx context.Context, _ *metricdata.ResourceMetrics) error {
	e.exports++
	return ctx.Err()
}

func (*exporter) ForceFlush(context.Context) error { return nil }

func (e *exporter) Shutdown(context.Context) error {
	e.shutdowns++
	return nil
}
