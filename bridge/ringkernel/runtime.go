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
	window         window

	changing sync.Mutex // held while a kernel is registered or unregistered

	mu       sync.RWMutex       // guards what follows, and Kernel.left and Kernel.reported
	kernels  map[string]*Kernel // by ID; includes the departed
	departed []*Kernel          // unregistered kernels whose counters are still reported
	number   uint64             // of kernels created
}

const (
	// afterlife is how long the counters of an unregistered kernel are still reported:
	// the SDK's default export interval, so that the last counts are exported.
	afterlife = time.Minute
	// maxDeparted bounds the memory for unregistered kernels. Beyond it, the series of
	// the kernel that was unregistered first end.
	maxDeparted = 1000
)

// NewRuntime returns a Runtime without kernels. If the MeterProvider rejects an
// instrument, OpenTelemetry's error handler gets the error, and snapshots still work.
func NewRuntime(opts ...Option) *Runtime {
	c := newConfig(opts)
	r := &Runtime{
		start:          time.Now(),
		attributes:     c.attributes,
		errorType:      c.errorType,
		gpuUtilization: c.gpuUtilization,
		kernels:        make(map[string]*Kernel),
	}
	r.window.init()
	r.connect(c.provider)
	return r
}

// Close ends the series of all kernels and releases the Runtime, which the
// MeterProvider otherwise keeps. Call it after the MeterProvider's last export. A
// Runtime that is used until the program ends doesn't have to be closed.
func (r *Runtime) Close() error {
	if r == nil {
		return nil
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	for _, k := range r.registered() {
		r.unregister(k.id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kernels {
		r.retire(k)
	}
	r.departed = nil
	return r.registration.Unregister()
}

// Register returns the kernel with an ID and creates it if necessary. The ID should be
// valid UTF-8; metrics have U+FFFD in place of other bytes.
//
// A kernel that is registered again after [Runtime.Unregister] is in [StateCreated],
// and its snapshots restart at 0. Within a minute, it is the same *Kernel and its
// counters continue. Later, it is a new *Kernel whose counters start at 0.
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
	r.changing.Lock()
	defer r.changing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kernels[id]
	switch {
	case k == nil:
		r.number++
		k = newKernel(r, id, r.number)
		r.kernels[id] = k
	case !k.left.IsZero():
		r.departed = slices.DeleteFunc(r.departed, func(d *Kernel) bool { return d == k })
		k.left = time.Time{}
		k.restart(time.Now())
	}
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
	if k := r.kernels[id]; k != nil && k.left.IsZero() {
		return k
	}
	return nil
}

// Unregister removes a kernel. Snapshots no longer include it, and its gauges end. It
// waits for running functions of [Kernel.ObserveQueue], which are not called again.
// Unregister does nothing if the ID is unknown.
//
// The kernel's counters are reported for another minute, and at least once, so that no
// count is lost. Until then, its *Kernel still counts. Later calls of its methods count
// nothing, and OpenTelemetry's error handler gets an error for the first one.
func (r *Runtime) Unregister(id string) {
	if r == nil {
		return
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	r.unregister(id)
}

// unregister is Unregister for a caller that holds changing.
func (r *Runtime) unregister(id string) {
	k := r.Kernel(id)
	if k == nil {
		return
	}
	r.mu.Lock()
	k.left, k.reported = time.Now(), false
	r.departed = append(r.departed, k)
	if len(r.departed) > maxDeparted {
		r.retire(r.departed[0])
		r.departed = slices.Delete(r.departed, 0, 1)
	}
	r.mu.Unlock()
	for q := range k.queues {
		k.queues[q].forget() // without mu, because it may have to wait
	}
}

// retire ends the series of a departed kernel. The caller holds mu.
func (r *Runtime) retire(k *Kernel) {
	k.retire()
	delete(r.kernels, k.id)
}

// registered returns all registered kernels, sorted by ID.
func (r *Runtime) registered() []*Kernel {
	r.mu.RLock()
	all := make([]*Kernel, 0, len(r.kernels))
	for _, k := range r.kernels {
		if k.left.IsZero() {
			all = append(all, k)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Kernel) int { return cmp.Compare(a.id, b.id) })
	return all
}

// reported is a kernel that a collection reports.
type reported struct {
	*Kernel
	live bool // it is registered, so its gauges are reported
}

// collect returns the kernels to report, and retires those whose last counts were
// reported. The SDK's cardinality limit applies to the series that are observed last, so
// the order is always that of registration. Otherwise, these series would change, and
// sums would decrease.
func (r *Runtime) collect() []reported {
	now := time.Now()
	r.mu.Lock()
	r.departed = slices.DeleteFunc(r.departed, func(k *Kernel) bool {
		ended := k.reported && now.Sub(k.left) >= afterlife
		if ended {
			r.retire(k)
		}
		k.reported = true
		return ended
	})
	all := make([]reported, 0, len(r.kernels))
	for _, k := range r.kernels {
		all = append(all, reported{k, k.left.IsZero()})
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b reported) int { return cmp.Compare(a.number, b.number) })
	return all
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
