// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package scope creates the instruments of the packages under bridge.
package scope

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Provider returns p, or the global MeterProvider if p is nil.
func Provider(p metric.MeterProvider) metric.MeterProvider {
	if p == nil {
		return otel.GetMeterProvider()
	}
	return p
}

// Meter creates the instruments of metrics of the catalog. If the MeterProvider returns no
// instrument, a no-op replaces it. If a view doesn't fit an instrument, the SDK returns an
// error and an instrument without that view. [Meter.Err] joins all errors.
type Meter struct {
	meter metric.Meter
	errs  []error
}

// NewMeter returns the Meter of a MeterProvider; see [Provider]. Its scope is that of the
// Collector receiver, so that an agent has the same series whichever of them reports it.
func NewMeter(p metric.MeterProvider) *Meter {
	return &Meter{meter: Provider(p).Meter(semconv.ScopeName,
		metric.WithInstrumentationVersion(semconv.Version), metric.WithSchemaURL(semconv.SchemaURL))}
}

// Err returns the errors so far.
func (m *Meter) Err() error { return errors.Join(m.errs...) }

// Counter creates a counter.
func (m *Meter) Counter(d semconv.Metric) metric.Int64Counter {
	return create(m, m.meter.Int64Counter, noop.Meter{}.Int64Counter, d)
}

// Histogram creates a histogram.
func (m *Meter) Histogram(d semconv.Metric) metric.Float64Histogram {
	return create[metric.Float64Histogram, metric.Float64HistogramOption](
		m, m.meter.Float64Histogram, noop.Meter{}.Float64Histogram, d, metric.WithExplicitBucketBoundaries(d.Bounds...))
}

// ObservableCounter creates an observable counter.
func (m *Meter) ObservableCounter(d semconv.Metric) metric.Int64ObservableCounter {
	return create(m, m.meter.Int64ObservableCounter, noop.Meter{}.Int64ObservableCounter, d)
}

// ObservableFloatCounter creates an observable counter of floating-point numbers.
func (m *Meter) ObservableFloatCounter(d semconv.Metric) metric.Float64ObservableCounter {
	return create(m, m.meter.Float64ObservableCounter, noop.Meter{}.Float64ObservableCounter, d)
}

// ObservableUpDownCounter creates an observable up-down counter.
func (m *Meter) ObservableUpDownCounter(d semconv.Metric) metric.Int64ObservableUpDownCounter {
	return create(m, m.meter.Int64ObservableUpDownCounter, noop.Meter{}.Int64ObservableUpDownCounter, d)
}

// ObservableGauge creates an observable gauge.
func (m *Meter) ObservableGauge(d semconv.Metric) metric.Int64ObservableGauge {
	return create(m, m.meter.Int64ObservableGauge, noop.Meter{}.Int64ObservableGauge, d)
}

// ObservableFloatGauge creates an observable gauge of floating-point numbers.
func (m *Meter) ObservableFloatGauge(d semconv.Metric) metric.Float64ObservableGauge {
	return create(m, m.meter.Float64ObservableGauge, noop.Meter{}.Float64ObservableGauge, d)
}

// Observe registers a callback of observable instruments.
func (m *Meter) Observe(f metric.Callback, instruments ...metric.Observable) metric.Registration {
	r, err := m.meter.RegisterCallback(f, instruments...)
	if err != nil {
		m.errs = append(m.errs, fmt.Errorf("observe instruments: %w", err))
	}
	if r == nil {
		return noop.Registration{}
	}
	return r
}

// create returns the instrument of a metric, or the one that none creates.
func create[I comparable, O any](m *Meter, of, none func(string, ...O) (I, error), d semconv.Metric, more ...O) I {
	opts := more
	for _, o := range []any{metric.WithUnit(d.Unit), metric.WithDescription(d.Description)} {
		if o, ok := o.(O); ok { // always
			opts = append(opts, o)
		}
	}
	i, err := of(d.Name, opts...)
	if err != nil {
		m.errs = append(m.errs, fmt.Errorf("create the instrument of %s: %w", d.Name, err))
	}
	if i == *new(I) {
		i, _ = none(d.Name) // never fails
	}
	return i
}
