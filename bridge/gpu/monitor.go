// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// Option configures a [Monitor].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	provider metric.MeterProvider
	library  nvml.Interface
}

// WithMeterProvider sets the MeterProvider that the metrics go to. The default is the
// global one.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		c.provider = provider
		return c
	})
}

// WithLibrary sets the NVML library, for example a mock, or a library at another path:
// nvml.New(nvml.WithLibraryPath(…)). The default is the system's libnvidia-ml.so.1.
func WithLibrary(library nvml.Interface) Option {
	return optionFunc(func(c config) config {
		c.library = library
		return c
	})
}

// Monitor reports metrics of the machine's GPUs. It is safe for concurrent use.
type Monitor struct {
	library      nvml.Interface
	instruments  instruments
	registration metric.Registration

	mu      sync.Mutex // guards the following fields; held during calls of NVML
	devices []*device  // empty without a driver and after Close
	open    bool
	last    []reading // the values at Close
	until   time.Time // when last is no longer reported

	closing sync.Once
}

// reading is a sample of a device.
type reading struct {
	device *device
	sample Sample
}

// New finds the GPUs and creates the instruments. It returns an error if the provider
// rejects an instrument, but not if there is no GPU.
func New(opts ...Option) (*Monitor, error) {
	var c config
	for _, o := range opts {
		c = o.apply(c)
	}
	if c.provider == nil {
		c.provider = otel.GetMeterProvider()
	}
	if c.library == nil {
		c.library = nvml.New()
	}
	m := &Monitor{library: c.library}
	unregisterClosed()
	if err := m.report(c.provider); err != nil {
		return nil, err
	}
	m.find()
	return m, nil
}

// find gets the list of GPUs from NVML. It is empty if NVML returns an error, for
// example because there is no driver.
func (m *Monitor) find() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.library.Init() != nvml.SUCCESS {
		return
	}
	m.open = true
	count, ret := m.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return
	}
	for i := range count {
		handle, ret := m.library.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // no permission, or a lost GPU
		}
		if d := newDevice(handle); d != nil {
			m.devices = append(m.devices, d)
		}
	}
}

// Samples returns the current values of all GPUs, in NVML's order. It returns nil
// without a GPU or a driver, and after Close.
func (m *Monitor) Samples() []Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Sample
	for _, r := range m.read() {
		all = append(all, r.sample)
	}
	return all
}

// read samples all devices. The caller holds the lock.
func (m *Monitor) read() []reading {
	var all []reading
	for _, d := range m.devices {
		all = append(all, reading{d, d.sample()})
	}
	return all
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

// Close reads the GPUs once more and releases NVML. It can be called before or after
// the MeterProvider is shut down: the last values are reported for another minute, or
// until another Monitor is created. The error is always nil. Further calls do nothing.
func (m *Monitor) Close() error {
	m.closing.Do(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reportLast()
		m.devices = nil
		if m.open {
			_ = m.library.Shutdown() // an error would have no effect
		}
	})
	return nil
}
