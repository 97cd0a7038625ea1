// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/bridge/internal/sampled"
)

// Runtime holds the telemetry of the kernels that are registered with it. A
// [Producer] passes it to a reader; [Runtime.Summary] returns it to the program.
//
// All methods are safe for concurrent use. A nil *Runtime turns telemetry off: it
// registers nothing, produces nothing, and its snapshots are empty.
type Runtime struct {
	clock          func() time.Time
	exactTimes     bool // the clock is read for every message
	start          time.Time
	attributes     []attribute.KeyValue
	errorType      func(error) string
	gpuUtilization func() (float64, bool)
	derived        bool
	filter         sampled.Filter

	window       window
	exemplars    atomic.Uint64 // how many were taken
	lastProduced moment

	mu        sync.RWMutex // guards what follows, and each Producer's list of departed kernels
	kernels   map[string]*Kernel
	producers []weak.Pointer[Producer]
}

// NewRuntime returns a Runtime without kernels. Create it before the reader, which
// needs a Producer from [Runtime.NewProducer]. A Runtime needn't be closed.
func NewRuntime(opts ...Option) *Runtime {
	c := newConfig(opts)
	r := &Runtime{
		clock:          c.clock,
		exactTimes:     c.clock != nil,
		attributes:     c.attributes,
		errorType:      c.errorType,
		gpuUtilization: c.gpuUtilization,
		derived:        c.derived,
		filter:         sampled.Environment(),
		kernels:        make(map[string]*Kernel),
	}
	if r.clock == nil {
		r.clock = time.Now
	}
	r.start = r.clock()
	r.window.init()
	return r
}

// Register returns the kernel with an ID, and creates it if there is none. If the
// ID was unregistered, the kernel is in [StateCreated] again, and its snapshots
// restart at 0.
//
// On a nil Runtime, Register returns nil, which is a Kernel that does nothing. It
// also does so for an empty ID, which it reports to OpenTelemetry's error handler.
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
	if k := r.kernels[id]; k != nil {
		return k // another goroutine was first
	}
	now := r.clock()
	k := r.takeBack(id)
	if k != nil {
		k.restart(now)
	} else {
		k = newKernel(r, id, now)
	}
	r.kernels[id] = k
	return k
}

var errNoID = errors.New("register a ring kernel: the id is empty, so nothing is recorded; give each kernel an id")

// Kernel returns the kernel with an ID, or nil if none is registered.
func (r *Runtime) Kernel(id string) *Kernel {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.kernels[id]
}

// Unregister removes a kernel from the snapshots and ends its gauges. Two more
// collections report its counters and latencies, so that none is lost even if an
// export fails. Then the kernel's memory is released. Unregister does nothing for an
// unknown ID.
func (r *Runtime) Unregister(id string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kernels[id]
	if k == nil {
		return
	}
	delete(r.kernels, id)
	for q := range k.queues {
		k.queues[q].forget() // the function to read it may no longer work
	}
	r.producers = slices.DeleteFunc(r.producers, func(w weak.Pointer[Producer]) bool {
		p := w.Value()
		if p != nil {
			p.depart(k)
		}
		return p == nil
	})
}

// takeBack returns a kernel that was unregistered and is still reported, or nil. Its
// Producers no longer report it as departed: they would report its attributes
// twice. The caller holds the lock.
func (r *Runtime) takeBack(id string) (found *Kernel) {
	for _, w := range r.producers {
		if p := w.Value(); p != nil {
			if k := p.takeBack(id); k != nil {
				found = k
			}
		}
	}
	return found
}

// registered returns all kernels, sorted by ID.
func (r *Runtime) registered() []*Kernel {
	r.mu.RLock()
	all := make([]*Kernel, 0, len(r.kernels))
	for _, k := range r.kernels {
		all = append(all, k)
	}
	r.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Kernel) int { return cmp.Compare(a.id, b.id) })
	return all
}
