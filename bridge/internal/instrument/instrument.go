// Package instrument creates OpenTelemetry instruments from the catalog.
package instrument

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Maker creates instruments with the name, unit and description of the
// catalog. It collects the observable instruments and the errors, so that its
// user checks once.
type Maker struct {
	meter    metric.Meter
	observed []metric.Observable
	errs     []error
}

// NewMaker returns a Maker that creates instruments with a meter.
func NewMaker(meter metric.Meter) *Maker { return &Maker{meter: meter} }

// Observed returns the observable instruments created so far.
func (m *Maker) Observed() []metric.Observable { return m.observed }

// Err returns the errors so far. Each names its instrument.
func (m *Maker) Err() error { return errors.Join(m.errs...) }

// Counter creates an observable counter of integers.
func (m *Maker) Counter(s semconv.Metric) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

// UpDownCounter creates an observable up-down counter of integers.
func (m *Maker) UpDownCounter(s semconv.Metric) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

// Gauge creates an observable gauge of floating-point numbers.
func (m *Maker) Gauge(s semconv.Metric) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

// IntGauge creates an observable gauge of integers.
func (m *Maker) IntGauge(s semconv.Metric) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

// Histogram creates a histogram with bucket bounds.
func (m *Maker) Histogram(s semconv.Metric, bounds []float64) metric.Float64Histogram {
	i, err := m.meter.Float64Histogram(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.made(s, nil, err)
	return i
}

func (m *Maker) made(s semconv.Metric, i metric.Observable, err error) {
	if err != nil {
		m.errs = append(m.errs, fmt.Errorf("make instrument %s: %w", s.Name, err))
	}
	if i != nil {
		m.observed = append(m.observed, i)
	}
}
