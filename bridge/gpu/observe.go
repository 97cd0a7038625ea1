// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// ScopeName is the name of the instrumentation scope of the GPU metrics.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge/gpu"

type instruments struct {
	usage, limit                            metric.Int64ObservableUpDownCounter
	memory, utilization, temperature, power metric.Float64ObservableGauge
	energy                                  metric.Float64ObservableCounter
}

// report creates the instruments and registers their callback. The descriptions are
// those of the semantic conventions.
func (m *Monitor) report(provider metric.MeterProvider) error {
	meter := provider.Meter(ScopeName)
	var (
		errs     []error
		observed []metric.Observable
		i        = &m.instruments
	)
	created := func(name string, o metric.Observable, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("create instrument %s: %w", name, err))
		}
		observed = append(observed, o)
	}
	upDown := func(name, description string) metric.Int64ObservableUpDownCounter {
		o, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit("By"), metric.WithDescription(description))
		created(name, o, err)
		return o
	}
	gauge := func(name, unit, description string) metric.Float64ObservableGauge {
		o, err := meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		created(name, o, err)
		return o
	}
	i.usage = upDown("hw.gpu.memory.usage", "GPU memory used.")
	i.limit = upDown("hw.gpu.memory.limit", "Size of the GPU memory.")
	i.memory = gauge("hw.gpu.memory.utilization", "1", "Fraction of GPU memory used.")
	i.utilization = gauge("hw.gpu.utilization", "1", "Fraction of time spent in a specific task.")
	i.temperature = gauge("hw.temperature", "Cel", "Temperature in degrees Celsius.")
	i.power = gauge("hw.power", "W", "Instantaneous power consumed by the component.")
	var err error
	i.energy, err = meter.Float64ObservableCounter("hw.energy", metric.WithUnit("J"),
		metric.WithDescription("Energy consumed by the component."))
	created("hw.energy", i.energy, err)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if m.registration, err = meter.RegisterCallback(m.observe, observed...); err != nil {
		return fmt.Errorf("register callback of GPU metrics: %w", err)
	}
	return nil
}

// observe is the callback of the instruments. It runs at each collection of a reader.
func (m *Monitor) observe(_ context.Context, o metric.Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	readings := m.read()
	if time.Now().Before(m.until) {
		readings = m.last
	}
	for _, r := range readings {
		m.instruments.observe(o, r.device, r.sample)
	}
	return nil
}

func (i *instruments) observe(o metric.Observer, d *device, s Sample) {
	used, known := s.MemoryUsed.Get()
	total, _ := s.MemoryTotal.Get()
	if known {
		o.ObserveInt64(i.usage, int64(used), d.point)
		o.ObserveInt64(i.limit, int64(total), d.point)
	}
	if known && total > 0 {
		o.ObserveFloat64(i.memory, used/total, d.point)
	}
	for _, x := range []struct {
		instrument metric.Float64Observable
		value      Value
		point      metric.ObserveOption
	}{
		{i.utilization, s.Utilization, d.general},
		{i.temperature, s.Temperature, d.point},
		{i.power, s.Power, d.point},
		{i.energy, s.Energy, d.point},
	} {
		if v, ok := x.value.Get(); ok {
			o.ObserveFloat64(x.instrument, v, x.point)
		}
	}
}
