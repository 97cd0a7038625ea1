// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package metrictest

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Collect returns the metrics that a reader collects. They must all have the given scope.
func Collect(t *testing.T, reader sdkmetric.Reader, scope string) []metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	var all []metricdata.Metrics
	for _, sm := range rm.ScopeMetrics {
		if sm.Scope.Name != scope {
			t.Errorf("scope %q, want %q", sm.Scope.Name, scope)
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
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Count))
		}
	case metricdata.ExponentialHistogram[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Count))
		}
	default:
		panic(fmt.Sprintf("%s is a %T", m.Name, data))
	}
}

// Find returns the metric with a name, which must exist.
func Find(t *testing.T, ms []metricdata.Metrics, name string) metricdata.Metrics {
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
func Data[T metricdata.Aggregation](t *testing.T, ms []metricdata.Metrics, name string) T {
	t.Helper()
	d, ok := Find(t, ms, name).Data.(T)
	if !ok {
		t.Fatalf("%s is not a %T", name, d)
	}
	return d
}
