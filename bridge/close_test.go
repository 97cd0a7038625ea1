// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// backend is an exporter to a backend that adds up deltas and keeps the newest of other values.
type backend struct {
	t           *testing.T
	temporality metricdata.Temporality
	names       map[string]bool
	values      map[string]float64
}

func (b *backend) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	if kind == sdkmetric.InstrumentKindUpDownCounter || kind == sdkmetric.InstrumentKindObservableUpDownCounter {
		return metricdata.CumulativeTemporality
	}
	return b.temporality
}

func (*backend) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

func (b *backend) Export(_ context.Context, rm *metricdata.ResourceMetrics) error {
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			b.names[m.Name] = true
			delta := strings.Contains(fmt.Sprintf("%+v", m.Data), "Temporality:DeltaTemporality")
			for series, v := range metrictest.Values([]metricdata.Metrics{m}) {
				if v < 0 {
					b.t.Errorf("%s = %v is negative", series, v)
				}
				if delta {
					v += b.values[series]
				}
				b.values[series] = v
			}
		}
	}
	return nil
}

func (*backend) ForceFlush(context.Context) error { return nil }
func (*backend) Shutdown(context.Context) error   { return nil }

// Programs that live for less than an export interval defer Close and Shutdown in some order, and start again what
// they closed. Every metric is exported, none is negative, and everything counts once.
func TestEverythingIsExportedOnceInAnyOrderOfCloseAndShutdown(t *testing.T) {
	for _, temporality := range []metricdata.Temporality{metricdata.CumulativeTemporality, metricdata.DeltaTemporality} {
		for _, closeFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, Close first: %v", temporality, closeFirst), func(t *testing.T) {
				each(t, func(t *testing.T, p pkg) {
					const runs = 3
					a, b := newBackend(t, temporality), newBackend(t, temporality)
					provider := sdkmetric.NewMeterProvider(
						sdkmetric.WithReader(sdkmetric.NewPeriodicReader(a, sdkmetric.WithInterval(time.Hour))),
						sdkmetric.WithReader(sdkmetric.NewPeriodicReader(b, sdkmetric.WithInterval(time.Hour))))
					var stops []func() error
					for run := range runs {
						stops = nil
						record, stop := p.start(t, provider)
						record(t.Context(), 0)
						if run < runs-1 {
							must.OK(t, errors.Join(stop(), provider.ForceFlush(t.Context())))
						}
						stops = append(stops, stop, func() error { return provider.Shutdown(t.Context()) })
					}
					if !closeFirst {
						slices.Reverse(stops)
					}
					for _, stop := range stops {
						must.OK(t, stop())
					}
					want := p.once(t)
					for series, v := range want {
						want[series] = runs * v
					}
					for _, got := range []*backend{a, b} {
						for _, values := range []map[string]float64{want, got.values} {
							maps.DeleteFunc(values, func(series string, _ float64) bool { return !p.adds(series) })
						}
						if d := cmp.Diff(want, got.values); d != "" {
							t.Errorf("exported sums (-want +got):\n%s", d)
						}
						p.named(t, slices.Collect(maps.Keys(got.names)))
					}
				})
			})
		}
	}
}

func newBackend(t *testing.T, temporality metricdata.Temporality) *backend {
	t.Helper()
	return &backend{t: t, temporality: temporality, names: make(map[string]bool), values: make(map[string]float64)}
}

// once returns the values of a program that records once.
func (p *pkg) once(t *testing.T) map[string]float64 {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	record, _ := p.start(t, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	record(t.Context(), 0)
	return metrictest.Values(metrictest.Collect(t, reader))
}

// adds reports whether the values of a series add up: those of counters and histograms.
func (p *pkg) adds(series string) bool {
	name, _, _ := strings.Cut(series, "{")
	i := slices.IndexFunc(p.metrics, func(m semconv.Metric) bool { return m.Name == name })
	return i >= 0 && (p.metrics[i].Kind == semconv.Counter || p.metrics[i].Kind == semconv.Histogram)
}
