// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Option configures a [Monitor].
type Option func(*config)

type config struct{ provider metric.MeterProvider }

// WithMeterProvider sets the MeterProvider that the metrics go to. The default is the
// global one.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return func(c *config) { c.provider = provider }
}

// Monitor reports metrics of the machine's GPUs. It is safe for concurrent use. A nil
// *Monitor has no GPUs.
type Monitor struct {
	mu      sync.Mutex // guards what follows; not held while NVML runs
	source  source     // nil without NVML, and after Close
	reading *reading   // the newest one
}

// reading is a call of NVML.
type reading struct {
	done    chan struct{} // closed when samples are set
	samples []Sample
	late    bool // reported
}

// Sample holds the current values of one GPU. Values that NVML doesn't provide are nil.
type Sample struct {
	UUID string // identifies the GPU
	Name string // of the model, such as NVIDIA H200

	MemoryUsed  *float64 // bytes
	MemoryTotal *float64 // bytes
	Utilization *float64 // 0 to 1
	Temperature *float64 // °C
	Power       *float64 // W
	Energy      *float64 // J, since the driver was loaded
}

// source provides the values of GPUs.
type source interface {
	// samples returns the current values of all GPUs, always in the same order.
	samples() []Sample
	close()
}

// New finds the GPUs and creates the instruments. It isn't an error if there is no GPU. If the
// MeterProvider rejects an instrument, OpenTelemetry's error handler gets the error, and the
// other ones still work.
func New(opts ...Option) *Monitor { return newMonitor(newSource(), opts...) }

func newMonitor(s source, opts ...Option) *Monitor {
	var c config
	for _, o := range opts {
		o(&c)
	}
	m, meter := &Monitor{source: s}, scope.NewMeter(c.provider)
	// The descriptions are those of the semantic conventions.
	gauge := func(name, unit, description string) metric.Float64Observable {
		return meter.ObservableFloatGauge(semconv.Metric{Name: name, Unit: unit, Description: description})
	}
	upDown := func(name, description string) metric.Int64Observable {
		return meter.ObservableUpDownCounter(semconv.Metric{Name: name, Unit: "By", Description: description})
	}
	usage, limit := upDown("hw.gpu.memory.usage", "GPU memory used."), upDown("hw.gpu.memory.limit", "Size of the GPU memory.")
	memory := gauge("hw.gpu.memory.utilization", "1", "Fraction of GPU memory used.")
	utilization := gauge("hw.gpu.utilization", "1", "Fraction of time spent in a specific task.")
	temperature := gauge("hw.temperature", "Cel", "Temperature in degrees Celsius.")
	power := gauge("hw.power", "W", "Instantaneous power consumed by the component.")
	energy := meter.ObservableFloatCounter(semconv.Metric{Name: "hw.energy", Unit: "J", Description: "Energy consumed by the component."})
	meter.Observe(func(ctx context.Context, o metric.Observer) error {
		for _, s := range m.samples(ctx) {
			id := metric.WithAttributes(
				attribute.String("hw.id", text.Valid(s.UUID)), attribute.String("hw.name", text.Valid(s.Name)),
				attribute.String("hw.vendor", "NVIDIA"), attribute.String("hw.type", "gpu"))
			observe := func(instrument metric.Float64Observable, v *float64, opts ...metric.ObserveOption) {
				if v != nil {
					o.ObserveFloat64(instrument, *v, append(opts, id)...)
				}
			}
			if used, total := s.MemoryUsed, s.MemoryTotal; used != nil && total != nil && *total > 0 {
				o.ObserveInt64(usage, int64(*used), id)
				o.ObserveInt64(limit, int64(*total), id)
				o.ObserveFloat64(memory, *used / *total, id)
			}
			observe(utilization, s.Utilization, metric.WithAttributes(attribute.String("hw.gpu.task", "general")))
			observe(temperature, s.Temperature)
			observe(power, s.Power)
			observe(energy, s.Energy)
		}
		return nil
	}, usage, limit, memory, utilization, temperature, power, energy)
	return m
}

// Samples returns the current values of all GPUs and, after Close, the last ones. It returns
// nil without a GPU or a driver, and if NVML doesn't answer within a second.
func (m *Monitor) Samples() []Sample {
	if m == nil {
		return nil
	}
	return m.samples(context.Background())
}

// patience is how long a collection waits for NVML. It holds a lock of the SDK meanwhile.
const patience = time.Second

// samples reads the GPUs on a goroutine of its own, because a call of NVML can't be
// canceled. While NVML hangs, there is one such goroutine.
func (m *Monitor) samples(ctx context.Context) []Sample {
	m.mu.Lock()
	r := m.reading
	if m.source != nil && (r == nil || r.finished()) {
		r = &reading{done: make(chan struct{})}
		m.reading = r
		go r.read(m.source)
	}
	hangs := r != nil && r.late
	m.mu.Unlock()
	if r == nil {
		return nil
	}
	if !hangs { // nobody has waited in vain yet
		timeout := time.NewTimer(patience)
		defer timeout.Stop()
		select {
		case <-r.done:
		case <-ctx.Done():
		case <-timeout.C:
		}
	}
	if r.finished() {
		return r.samples
	}
	m.mu.Lock()
	first := !r.late
	r.late = true
	m.mu.Unlock()
	if first {
		otel.Handle(errors.New("read GPUs: NVML doesn't answer; metrics of GPUs are missing until it does, check the driver with nvidia-smi"))
	}
	return nil
}

func (r *reading) read(s source) {
	r.samples = s.samples()
	close(r.done)
}

func (r *reading) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Utilization returns the mean utilization of the GPUs, from 0 to 1. It returns ok =
// false if no GPU provides its utilization.
func (m *Monitor) Utilization() (ratio float64, ok bool) {
	n := 0
	for _, s := range m.Samples() {
		if s.Utilization != nil {
			ratio += *s.Utilization
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return ratio / float64(n), true
}

// Close reads the GPUs once more and releases NVML, before or after the MeterProvider is shut
// down. The metrics stay with their last values until then. If NVML doesn't answer, Close
// doesn't release it, and returns an error. Further calls do nothing.
func (m *Monitor) Close() error {
	if m == nil {
		return nil
	}
	m.samples(context.Background())
	m.mu.Lock()
	s, last := m.source, m.reading
	m.source = nil
	m.mu.Unlock()
	switch {
	case s == nil:
		return nil
	case last.finished():
		s.close()
		return nil
	}
	return errors.New("close the monitor of GPUs: NVML doesn't answer, and isn't released")
}
