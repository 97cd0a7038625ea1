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

// Runtime records the telemetry of the kernels that are registered with it. A
// [Producer] passes it to a reader; [Runtime.Summary] returns it to the program.
//
// All methods are safe for concurrent use. A nil *Runtime turns telemetry off: it
// registers no kernels, produces no metrics, and its snapshots are empty.
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
	exemplars    atomic.Uint64 // number of exemplars taken
	lastProduced moment

	mu        sync.RWMutex // guards what follows, and each Producer's list of departed kernels
	kernels   map[string]*Kernel
	producers []weak.Pointer[Producer]
}

// NewRuntime returns a Runtime without kernels. Create it before the reader, which
// needs a Producer from [Runtime.NewProducer]. A Runtime doesn't have to be closed.
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

// Register returns the kernel with an ID and creates it if necessary. A kernel that
// is registered again after [Runtime.Unregister] is in [StateCreated], and its
// snapshots restart at 0.
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

var errNoID = errors.New("register ring kernel: the ID is empty, so nothing is recorded; give each kernel an ID")

// Kernel returns the kernel with an ID, or nil if none is registered.
func (r *Runtime) Kernel(id string) *Kernel {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.kernels[id]
}

// Unregister removes a kernel. Snapshots no longer include it, and its gauges end.
// The next two collections by each reader still report its counters and latencies,
// so that no count is lost even if an export fails. Unregister does nothing if the
// ID is unknown.
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
		k.queues[q].forget() // the function that reads the queue may no longer be valid
	}
	r.producers = slices.DeleteFunc(r.producers, func(w weak.Pointer[Producer]) bool {
		p := w.Value()
		if p != nil {
			p.depart(k)
		}
		return p == nil
	})
}

// takeBack returns an unregistered kernel that is still reported, or nil. It removes
// the kernel from all Producers' departed kernels; otherwise, they would report its
// attributes twice. The caller holds the lock.
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
