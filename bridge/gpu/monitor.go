// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/nils"
	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Option configures a [Monitor].
type Option interface {
	apply(*config)
}

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	provider metric.MeterProvider
	source   Source
}

// WithMeterProvider sets the MeterProvider that the metrics go to. The default is the
// global one.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.provider = provider })
}

// WithSource sets what provides the values, for example a simulation. The default is
// NVML. The Monitor closes the source.
func WithSource(s Source) Option {
	return optionFunc(func(c *config) { c.source = s })
}

// Monitor reports metrics of the machine's GPUs. It is safe for concurrent use. A nil
// *Monitor has no GPUs.
type Monitor struct {
	registration metric.Registration

	usage, limit                            metric.Int64ObservableUpDownCounter
	memory, utilization, temperature, power metric.Float64ObservableGauge
	energy                                  metric.Float64ObservableCounter

	mu     sync.Mutex // guards the following fields; held while the source is read
	source Source     // nil after Close
	points map[string]points
}

// points select the data points of a GPU.
type points struct{ all, general metric.ObserveOption }

// New finds the GPUs and creates the instruments. It returns an error if the provider
// rejects an instrument, but not if there is no GPU.
func New(opts ...Option) (*Monitor, error) {
	var c config
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	if nils.Is(c.source) {
		c.source = newSource()
	}
	m := &Monitor{source: c.source, points: make(map[string]points)}
	if err := m.connect(c.provider); err != nil {
		return nil, errors.Join(fmt.Errorf("report GPU metrics: %w", err), m.Close())
	}
	return m, nil
}

// connect creates the instruments and registers their callback. The descriptions are
// those of the semantic conventions.
func (m *Monitor) connect(provider metric.MeterProvider) error {
	meter := scope.NewMeter(provider)
	d := func(name, unit, description string) semconv.Metric {
		return semconv.Metric{Name: name, Unit: unit, Description: description}
	}
	m.usage = meter.ObservableUpDownCounter(d("hw.gpu.memory.usage", "By", "GPU memory used."))
	m.limit = meter.ObservableUpDownCounter(d("hw.gpu.memory.limit", "By", "Size of the GPU memory."))
	m.memory = meter.ObservableFloatGauge(d("hw.gpu.memory.utilization", "1", "Fraction of GPU memory used."))
	m.utilization = meter.ObservableFloatGauge(d("hw.gpu.utilization", "1", "Fraction of time spent in a specific task."))
	m.temperature = meter.ObservableFloatGauge(d("hw.temperature", "Cel", "Temperature in degrees Celsius."))
	m.power = meter.ObservableFloatGauge(d("hw.power", "W", "Instantaneous power consumed by the component."))
	m.energy = meter.ObservableFloatCounter(d("hw.energy", "J", "Energy consumed by the component."))
	m.registration = meter.Observe(m.observe,
		m.usage, m.limit, m.memory, m.utilization, m.temperature, m.power, m.energy)
	return meter.Err()
}

// observe is the callback of the instruments.
func (m *Monitor) observe(_ context.Context, o metric.Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.read() {
		p := m.pointsOf(s)
		used, known := s.MemoryUsed.Get()
		total, _ := s.MemoryTotal.Get()
		if known {
			o.ObserveInt64(m.usage, int64(used), p.all)
			o.ObserveInt64(m.limit, int64(total), p.all)
		}
		if known && total > 0 {
			o.ObserveFloat64(m.memory, used/total, p.all)
		}
		observe(o, m.utilization, s.Utilization, p.general)
		observe(o, m.temperature, s.Temperature, p.all)
		observe(o, m.power, s.Power, p.all)
		observe(o, m.energy, s.Energy, p.all)
	}
	return nil
}

func observe(o metric.Observer, instrument metric.Float64Observable, v Value, p metric.ObserveOption) {
	if v, ok := v.Get(); ok {
		o.ObserveFloat64(instrument, v, p)
	}
}

// read samples all GPUs. The caller holds the lock.
func (m *Monitor) read() []Sample {
	if m.source == nil {
		return nil
	}
	return m.source.Samples()
}

// pointsOf returns the data points of a GPU. The caller holds the lock.
func (m *Monitor) pointsOf(s Sample) points {
	if p, ok := m.points[s.UUID]; ok {
		return p
	}
	set := []attribute.KeyValue{
		attribute.String("hw.id", text.Valid(s.UUID)), attribute.String("hw.name", text.Valid(s.Name)),
		attribute.String("hw.vendor", "NVIDIA"), attribute.String("hw.type", "gpu"),
	}
	p := points{all: metric.WithAttributeSet(attribute.NewSet(set...))}
	p.general = metric.WithAttributeSet(attribute.NewSet(append(set, attribute.String("hw.gpu.task", "general"))...))
	m.points[s.UUID] = p
	return p
}

// Samples returns the current values of all GPUs. It returns nil without a GPU or a
// driver, and after Close.
func (m *Monitor) Samples() []Sample {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read()
}

// Utilization returns the mean utilization of the GPUs, from 0 to 1. It returns ok =
// false if no GPU provides its utilization.
func (m *Monitor) Utilization() (ratio float64, ok bool) {
	n := 0
	for _, s := range m.Samples() {
		if u, ok := s.Utilization.Get(); ok {
			ratio += u
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return ratio / float64(n), true
}

// Close ends the metrics and closes the source. Call it after the MeterProvider's last
// export. Further calls do nothing.
func (m *Monitor) Close() error {
	if m == nil {
		return nil
	}
	// Without the lock, because Unregister waits for a callback.
	err := m.registration.Unregister()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.source == nil {
		return err
	}
	err = errors.Join(err, m.source.Close())
	m.source = nil
	return err
}
