// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrictest contains test helpers for the packages under bridge: access to
// collected metrics and to reported errors.
package metrictest

import (
	"fmt"
	"log"
	"slices"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Collect returns the metrics that a reader collects. They must all have the scope of the
// catalog.
func Collect(t testing.TB, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	want := instrumentation.Scope{Name: semconv.ScopeName, Version: semconv.Version, SchemaURL: semconv.SchemaURL}
	var all []metricdata.Metrics
	for _, sm := range rm.ScopeMetrics {
		if sm.Scope != want {
			t.Errorf("scope %+v, want %+v", sm.Scope, want)
		}
		all = append(all, sm.Metrics...)
	}
	return all
}

// Values returns the value of each series, or the count of a histogram, by metric name
// and attributes: `name{key=value,…}`.
func Values(ms []metricdata.Metrics) map[string]float64 {
	all := make(map[string]float64)
	for _, m := range ms {
		EachPoint(m, func(set attribute.Set, v float64) {
			key := fmt.Sprintf("%s{%s}", m.Name, set.Encoded(attribute.DefaultEncoder()))
			all[key] += v
		})
	}
	return all
}

// EachPoint calls a function with each data point of a metric.
func EachPoint(m metricdata.Metrics, f func(attribute.Set, float64)) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		each(data.DataPoints, f)
	case metricdata.Sum[float64]:
		each(data.DataPoints, f)
	case metricdata.Gauge[int64]:
		each(data.DataPoints, f)
	case metricdata.Gauge[float64]:
		each(data.DataPoints, f)
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Count))
		}
	default:
		panic(fmt.Sprintf("%s is a %T", m.Name, data))
	}
}

func each[N int64 | float64](points []metricdata.DataPoint[N], f func(attribute.Set, float64)) {
	for _, p := range points {
		f(p.Attributes, float64(p.Value))
	}
}

// Find returns the metric with a name, which must exist.
func Find(t testing.TB, ms []metricdata.Metrics, name string) metricdata.Metrics {
	t.Helper()
	for _, m := range ms {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %s", name)
	return metricdata.Metrics{}
}

// Data returns the data of the metric with a name, which must be a T.
func Data[T metricdata.Aggregation](t testing.TB, ms []metricdata.Metrics, name string) T {
	t.Helper()
	d, ok := Find(t, ms, name).Data.(T)
	if !ok {
		t.Fatalf("%s is not a %T", name, d)
	}
	return d
}

// Handle sets OpenTelemetry's error handler until the end of the test. What GetErrorHandler returns calls the handler
// of the time, so it can't be used to restore an earlier one.
func Handle(t testing.TB, handle func(error)) {
	t.Helper()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(handle))
	t.Cleanup(func() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Print(err) })) })
}

// Handled returns a function that returns the errors that OpenTelemetry's error handler
// has got since.
func Handled(t testing.TB) func() []string {
	t.Helper()
	var mu sync.Mutex
	var errs []string
	Handle(t, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err.Error())
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(errs)
	}
}
