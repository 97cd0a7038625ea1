// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package scope creates the instruments of the packages under bridge.
package scope

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Meter creates the instruments of metrics of the catalog. OpenTelemetry's error handler gets
// the errors. If the MeterProvider returns no instrument, a no-op replaces it. If a view doesn't
// fit an instrument, the SDK returns an error and an instrument without that view.
type Meter struct{ metric.Meter }

// NewMeter returns the Meter of a MeterProvider, or of the global one if p is nil. Its scope is
// that of the Collector receiver, so that an agent has the same series whichever of them
// reports it.
func NewMeter(p metric.MeterProvider) Meter {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	return Meter{p.Meter(semconv.ScopeName, metric.WithInstrumentationVersion(semconv.Version), metric.WithSchemaURL(semconv.SchemaURL))}
}

// Counter creates a counter.
func (m Meter) Counter(d semconv.Metric) metric.Int64Counter {
	return create(m.Int64Counter, noop.Meter{}.Int64Counter, d)
}

// Histogram creates a histogram.
func (m Meter) Histogram(d semconv.Metric) metric.Float64Histogram {
	return create[metric.Float64Histogram, metric.Float64HistogramOption](
		m.Float64Histogram, noop.Meter{}.Float64Histogram, d, metric.WithExplicitBucketBoundaries(d.Bounds...))
}

// ObservableCounter creates an observable counter.
func (m Meter) ObservableCounter(d semconv.Metric) metric.Int64ObservableCounter {
	return create(m.Int64ObservableCounter, noop.Meter{}.Int64ObservableCounter, d)
}

// ObservableFloatCounter creates an observable counter of floating-point numbers.
func (m Meter) ObservableFloatCounter(d semconv.Metric) metric.Float64ObservableCounter {
	return create(m.Float64ObservableCounter, noop.Meter{}.Float64ObservableCounter, d)
}

// ObservableUpDownCounter creates an observable up-down counter.
func (m Meter) ObservableUpDownCounter(d semconv.Metric) metric.Int64ObservableUpDownCounter {
	return create(m.Int64ObservableUpDownCounter, noop.Meter{}.Int64ObservableUpDownCounter, d)
}

// ObservableGauge creates an observable gauge.
func (m Meter) ObservableGauge(d semconv.Metric) metric.Int64ObservableGauge {
	return create(m.Int64ObservableGauge, noop.Meter{}.Int64ObservableGauge, d)
}

// ObservableFloatGauge creates an observable gauge of floating-point numbers.
func (m Meter) ObservableFloatGauge(d semconv.Metric) metric.Float64ObservableGauge {
	return create(m.Float64ObservableGauge, noop.Meter{}.Float64ObservableGauge, d)
}

// Observe registers a callback of observable instruments.
func (m Meter) Observe(f metric.Callback, instruments ...metric.Observable) metric.Registration {
	r, err := m.RegisterCallback(f, instruments...)
	if err != nil {
		otel.Handle(fmt.Errorf("observe instruments: %w", err))
	}
	if r == nil {
		return noop.Registration{}
	}
	return r
}

// create returns the instrument of a metric, or the one that none creates.
func create[I comparable, O any](of, none func(string, ...O) (I, error), d semconv.Metric, opts ...O) I {
	for _, o := range []any{metric.WithUnit(d.Unit), metric.WithDescription(d.Description)} {
		opts = append(opts, o.(O)) //nolint:errcheck,forcetypeassert // these options are those of all instruments
	}
	i, err := of(d.Name, opts...)
	if err != nil {
		otel.Handle(fmt.Errorf("create the instrument of %s: %w", d.Name, err))
	}
	if i == *new(I) {
		i, _ = none(d.Name) // never fails
	}
	return i
}

// Point has the attributes of a data point, as options of the methods of instruments. A call
// with a prepared slice allocates nothing.
type Point struct {
	Add     []metric.AddOption
	Record  []metric.RecordOption
	Observe []metric.ObserveOption
}

// NewPoint returns the point with some attributes.
func NewPoint(attributes ...attribute.KeyValue) Point {
	o := metric.WithAttributeSet(attribute.NewSet(attributes...))
	return Point{[]metric.AddOption{o}, []metric.RecordOption{o}, []metric.ObserveOption{o}}
}
