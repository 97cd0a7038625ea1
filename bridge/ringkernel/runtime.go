// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
)

// Runtime records the telemetry of the kernels that are registered with it, in
// instruments of a MeterProvider. [Runtime.Summary] returns it to the program.
//
// All methods are safe for concurrent use. A nil *Runtime turns telemetry off: it
// registers no kernels, and its snapshots are empty.
type Runtime struct {
	start          time.Time
	attributes     []attribute.KeyValue
	errorType      func(error) string
	gpuUtilization func() (float64, bool)
	instruments    instruments
	registration   metric.Registration

	// mu guards what follows. Nobody holds it while calling the SDK, whose collections take
	// it, or while a queue function runs.
	mu           sync.RWMutex
	kernels      map[string]*Kernel // by ID; includes unregistered ones that are still counted
	order        []*Kernel          // the same, in the order of registration
	unregistered int                // number of unregistered ones
}

const (
	// maxUnregistered is how many unregistered kernels keep their counters after these were
	// collected.
	maxUnregistered = 1000
	// maxUncollected bounds the memory of a program whose metrics nobody collects.
	maxUncollected = 100_000
)

// NewRuntime returns a Runtime without kernels. If the MeterProvider rejects an
// instrument, OpenTelemetry's error handler gets the error, and snapshots still work.
func NewRuntime(opts ...Option) *Runtime {
	c := newConfig(opts)
	r := &Runtime{
		start:          time.Now(),
		attributes:     text.Attributes(c.attributes),
		errorType:      c.errorType,
		gpuUtilization: c.gpuUtilization,
		kernels:        make(map[string]*Kernel),
	}
	r.connect(c.provider)
	return r
}

// Close unregisters all kernels, ends their series, and releases the Runtime, which the
// MeterProvider otherwise keeps. Counts since the last export aren't exported: call Close
// after the MeterProvider's ForceFlush or Shutdown. A Runtime that is used until the
// program ends doesn't have to be closed.
func (r *Runtime) Close() error {
	if r == nil {
		return nil
	}
	for _, k := range r.registered() {
		r.Unregister(k.id)
	}
	return r.registration.Unregister()
}

// Register returns the kernel with an ID and creates it if necessary. The ID should be
// valid UTF-8; metrics have U+FFFD in place of other bytes.
//
// A kernel that is registered again after [Runtime.Unregister] is in [StateCreated],
// and its snapshots restart at 0. Its counters continue.
//
// On a nil Runtime, Register returns nil, which is a valid Kernel that does nothing.
// For an empty ID, it also returns nil and passes an error to OpenTelemetry's error
// handler.
func (r *Runtime) Register(id string) *Kernel {
	if r == nil {
		return nil
	}
	if id == "" {
		otel.Handle(errNoID)
		return nil
	}
	if k := r.Kernel(id); k != nil {
		return k
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kernels[id]
	switch {
	case k == nil:
		k = newKernel(r, id)
		r.kernels[id] = k
		r.order = append(r.order, k)
	case !k.registered.Load():
		k.restart(time.Now())
		r.unregistered--
	}
	k.registered.Store(true)
	return k
}

var errNoID = errors.New("register ring kernel: the ID is empty, so nothing is recorded; give each kernel an ID")

// Kernel returns the kernel with an ID, or nil if none is registered.
func (r *Runtime) Kernel(id string) *Kernel {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if k := r.kernels[id]; k != nil && k.registered.Load() {
		return k
	}
	return nil
}

// Unregister removes a kernel. Snapshots no longer include it, and its gauges end. Its
// counters stay as they are, as those of the SDK do, so that no count is lost. Beyond 1,000
// unregistered kernels, the counters of the oldest end once a collection has reported them;
// if no reader collects, those beyond 100,000 are lost. Stop
// recording before: whether later calls of its *Kernel count is undefined.
//
// Unregister waits for running functions of [Kernel.ObserveQueue], which are not called
// again. So the caller must not hold a lock that such a function takes. Unregister does
// nothing if the ID is unknown.
func (r *Runtime) Unregister(id string) {
	k := r.Kernel(id)
	if k == nil {
		return
	}
	r.mu.Lock()
	if !k.registered.CompareAndSwap(true, false) {
		r.mu.Unlock()
		return
	}
	k.exported = false
	if r.unregistered++; r.unregistered > maxUncollected {
		r.forget(true)
	}
	old := k.queues.Swap(new([queues]queue))
	r.mu.Unlock()
	for q := range old {
		old[q].observe(nil) // waits
	}
}

// forget ends the counters of the unregistered kernels that were registered first, until at
// most maxUnregistered are left. Unless all may end, it keeps those that weren't collected
// since they were unregistered. The caller holds mu.
func (r *Runtime) forget(all bool) {
	excess := r.unregistered - maxUnregistered
	r.order = slices.DeleteFunc(r.order, func(k *Kernel) bool {
		if excess <= 0 || k.registered.Load() || !k.exported && !all {
			return false
		}
		delete(r.kernels, k.id)
		r.unregistered--
		excess--
		return true
	})
}

// registered returns all registered kernels, sorted by ID.
func (r *Runtime) registered() []*Kernel {
	r.mu.RLock()
	all := make([]*Kernel, 0, len(r.kernels))
	for _, k := range r.kernels {
		if k.registered.Load() {
			all = append(all, k)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Kernel) int { return cmp.Compare(a.id, b.id) })
	return all
}

// collect returns the kernels to report. The SDK's cardinality limit applies to the series
// that are observed last, so the order is always that of registration. Otherwise, these
// series would change, and sums would decrease.
func (r *Runtime) collect() []*Kernel {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(false)
	for _, k := range r.order {
		k.exported = true
	}
	return slices.Clone(r.order)
}

// Option configures a [Runtime].
type Option interface {
	apply(*config)
}

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	provider       metric.MeterProvider
	attributes     []attribute.KeyValue
	errorType      func(error) string
	gpuUtilization func() (float64, bool)
}

func newConfig(opts []Option) (c config) {
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	return c
}

// WithMeterProvider sets the MeterProvider that the metrics go to. The default is the
// global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.provider = p })
}

// WithAttributes adds attributes to every data point of the Runtime, for example to
// distinguish kernels of several Runtimes that have the same ID.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return optionFunc(func(c *config) { c.attributes = append(slices.Clip(c.attributes), attributes...) })
}

// WithErrorType sets the function that returns the value of error.type for an error.
// It must return one of a few names, never the error's text. If it returns "", or
// without this option, the value is the result of the error's method
// ErrorType() string, or else the error's Go type.
func WithErrorType(name func(error) string) Option {
	return optionFunc(func(c *config) { c.errorType = name })
}

// WithGPUUtilization sets the function that returns the GPU utilization for a
// [Summary], from 0 to 1. It returns ok = false if there is no GPU. It must be safe
// for concurrent use.
func WithGPUUtilization(utilization func() (ratio float64, ok bool)) Option {
	return optionFunc(func(c *config) { c.gpuUtilization = utilization })
}
