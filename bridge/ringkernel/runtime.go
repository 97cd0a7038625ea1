// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
)

// Runtime records the telemetry of the kernels that are registered with it, in
// instruments of a MeterProvider. [Runtime.Summary] returns it to the program.
//
// All methods are safe for concurrent use. A nil *Runtime turns telemetry off: it
// registers no kernels, and its snapshots are empty.
type Runtime struct {
	start          time.Time
	gpuUtilization func() (float64, bool)
	board          *scope.Board[instruments, series]

	unknown sync.Once // reports an ID that isn't registered

	// mu guards what follows. Nobody holds it while calling the SDK, whose collections take
	// it, or while a queue function runs.
	mu      sync.RWMutex
	kernels map[string]*Kernel // by ID
	order   []*Kernel          // in the order of registration; elements never change
}

// NewRuntime returns a Runtime without kernels. If the MeterProvider rejects an
// instrument, OpenTelemetry's error handler gets the error, and snapshots still work.
func NewRuntime(opts ...Option) *Runtime {
	var c config
	for _, o := range opts {
		o(&c)
	}
	return &Runtime{start: time.Now(), gpuUtilization: c.gpuUtilization, board: boards.Of(c.provider), kernels: make(map[string]*Kernel)}
}

// Close unregisters all kernels, before or after the MeterProvider is shut down. The error is
// always nil.
func (r *Runtime) Close() error {
	if r != nil {
		for _, k := range r.all() {
			r.Unregister(k.id)
		}
	}
	return nil
}

// Register returns the kernel with an ID and creates it if necessary. The ID should be
// valid UTF-8; metrics have U+FFFD in place of other bytes.
//
// If the ID was registered before, the metrics continue; snapshots start at 0.
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
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kernels[id]
	if k == nil {
		k = newKernel(r.board.Series(id), id)
		k.series.join(k)
		r.kernels[id], r.order = k, append(r.order, k)
	}
	return k
}

var errNoID = errors.New("register ring kernel: the ID is empty, so nothing is recorded; give each kernel an ID")

// Kernel returns the kernel with an ID, for code that can't keep a *Kernel, or nil if none is
// registered. OpenTelemetry's error handler gets the first such ID, because what is recorded
// with it is lost.
func (r *Runtime) Kernel(id string) *Kernel {
	k := r.kernel(id)
	if r != nil && k == nil {
		r.unknown.Do(func() {
			otel.Handle(fmt.Errorf("ring kernel %q isn't registered, so nothing is recorded; call Register first. Further unknown IDs aren't reported", id))
		})
	}
	return k
}

func (r *Runtime) kernel(id string) *Kernel {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.kernels[id]
}

// Unregister removes a kernel from the snapshots and sets its state to [StateTerminated]. Its
// metrics stay with their final values, which include the last sizes of its queues, until the
// MeterProvider is shut down.
//
// Unregister waits for running functions of [Kernel.ObserveQueue], calls each once more, and
// then never again. So the caller must not hold a lock that such a function takes. Unregister
// does nothing if the ID is unknown.
func (r *Runtime) Unregister(id string) {
	k := r.kernel(id)
	if k == nil {
		return
	}
	r.mu.Lock()
	first := r.kernels[id] == k
	if first {
		delete(r.kernels, id)
		r.order = slices.DeleteFunc(slices.Clone(r.order), func(o *Kernel) bool { return o == k })
	}
	r.mu.Unlock()
	if !first {
		return
	}
	for q := range k.queues {
		k.queues[q].freeze()
	}
	k.SetState(StateTerminated)
	k.expiry.Stop() // it keeps the kernel in memory
	k.series.part(k)
}

// all returns the kernels in the order of registration.
func (r *Runtime) all() []*Kernel {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.order
}

// Option configures a [Runtime].
type Option func(*config)

type config struct {
	provider       metric.MeterProvider
	gpuUtilization func() (float64, bool)
}

// WithMeterProvider sets the MeterProvider that the metrics go to. The default is the
// global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.provider = p }
}

// WithGPUUtilization sets the function that returns the GPU utilization for a
// [Summary], from 0 to 1. It returns ok = false if there is no GPU. It must be safe
// for concurrent use.
func WithGPUUtilization(utilization func() (ratio float64, ok bool)) Option {
	return func(c *config) { c.gpuUtilization = utilization }
}
