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

// Option sets something of a [Monitor].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	provider metric.MeterProvider
	library  nvml.Interface
}

// WithMeterProvider sets the provider of the instruments. The default is the
// global one, otel.GetMeterProvider.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		c.provider = provider
		return c
	})
}

// WithLibrary sets the NVML that is asked: one at another path, made by
// nvml.New(nvml.WithLibraryPath(…)), or a test's. The default is the system's,
// libnvidia-ml.so.1.
func WithLibrary(library nvml.Interface) Option {
	return optionFunc(func(c config) config {
		c.library = library
		return c
	})
}

// Monitor reports the figures of this machine's GPUs. Its methods are safe for
// concurrent use.
type Monitor struct {
	library      nvml.Interface
	instruments  instruments
	registration metric.Registration

	mu      sync.Mutex // guards what follows; held while NVML is asked
	devices []*device  // empty without a driver, and once closed
	open    bool
	last    []reading // at Close
	until   time.Time // when these are no longer reported

	closing sync.Once
}

// reading is what a device reported at a time.
type reading struct {
	device  *device
	figures Figures
}

// New finds the GPUs, and makes the instruments. The error is an instrument
// that the provider refuses, never that there is no GPU.
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

// find asks NVML for the GPUs. A driver that isn't there, or isn't of use, is
// as good as no GPU.
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
			continue // of another user, or lost
		}
		if d := newDevice(handle); d != nil {
			m.devices = append(m.devices, d)
		}
	}
}

// Figures are those of all GPUs now, in NVML's order. There are none without a
// driver, and after Close.
func (m *Monitor) Figures() []Figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Figures
	for _, r := range m.read() {
		all = append(all, r.figures)
	}
	return all
}

// read asks NVML for the figures of all devices. The caller holds the lock.
func (m *Monitor) read() []reading {
	var all []reading
	for _, d := range m.devices {
		all = append(all, reading{d, d.figures()})
	}
	return all
}

// Utilization is the mean utilization of the GPUs, 0 to 1; ok is false when
// none tells its own.
func (m *Monitor) Utilization() (ratio float64, ok bool) {
	n := 0
	for _, f := range m.Figures() {
		if u, ok := f.Utilization.Get(); ok {
			ratio += u
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return ratio / float64(n), true
}

// Close reads the GPUs for the last time and releases NVML. It can be called
// before or after the MeterProvider is shut down: the last values are reported for
// 1 more minute, or until another Monitor is created. The error is always nil, and
// further calls do nothing.
func (m *Monitor) Close() error {
	m.closing.Do(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.linger()
		m.devices = nil
		if m.open {
			_ = m.library.Shutdown() // nothing depends on it
		}
	})
	return nil
}
