package bridge

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// ScopeName is the name of the instrumentation scope of everything that this
// package reports.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge"

// instruments are those of a Runtime, beside the counters, which are its
// ledger's. All but duration are read by its callback.
type instruments struct {
	queueSize, queueCapacity, status metric.Int64ObservableUpDownCounter
	uptime, lastMessage              metric.Float64ObservableGauge
	throughput, errorRate            metric.Float64ObservableGauge // nil unless asked for
	duration                         metric.Float64Histogram       // nil with a LatencyProducer
}

// newInstruments makes them, and lists those that are observed.
func newInstruments(c config) (instruments, []metric.Observable, error) {
	m := maker{meter: c.provider.Meter(ScopeName)}
	i := instruments{
		queueSize:     m.upDownCounter(semconv.KernelQueueSize),
		queueCapacity: m.upDownCounter(semconv.KernelQueueCapacity),
		status:        m.upDownCounter(semconv.KernelStatus),
		uptime:        m.gauge(semconv.KernelUptime),
		lastMessage:   m.gauge(semconv.KernelLastMessageTime),
	}
	if c.derived {
		i.throughput = m.gauge(semconv.KernelThroughput)
		i.errorRate = m.gauge(semconv.KernelErrorRate)
	}
	if c.latencies == nil {
		i.duration = m.histogram(semconv.KernelMessageDuration, semconv.DurationBounds())
	}
	return i, m.observed, errors.Join(m.errs...)
}

// maker makes instruments from the catalogue, and keeps what it makes and what
// goes wrong.
type maker struct {
	meter    metric.Meter
	observed []metric.Observable
	errs     []error
}

func (m *maker) counter(s semconv.Metric) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

func (m *maker) upDownCounter(s semconv.Metric) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

func (m *maker) gauge(s semconv.Metric) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

func (m *maker) histogram(s semconv.Metric, bounds []float64) metric.Float64Histogram {
	i, err := m.meter.Float64Histogram(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.made(s, nil, err)
	return i
}

func (m *maker) made(s semconv.Metric, i metric.Observable, err error) {
	if err != nil {
		m.errs = append(m.errs, fmt.Errorf("make instrument %s: %w", s.Name, err))
	}
	if i != nil {
		m.observed = append(m.observed, i)
	}
}
