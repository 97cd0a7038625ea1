// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
	"github.com/nixl-otel/nixl-otel/bridge/internal/lane"
)

// Kernel records the telemetry of one ring kernel. [Runtime.Register] creates it.
//
// All methods are safe for concurrent use. A nil *Kernel is valid and does nothing.
// If the context of a call has a sampled span, the data point gets an exemplar with
// the span's IDs. Recording never blocks and ignores cancellation.
type Kernel struct {
	runtime *Runtime
	id      string
	created time.Time // when its series start
	points  points

	lanes     [lane.Count]atomic.Pointer[stripe]
	errors    errorCounts
	queues    [queues]queue
	state     atomic.Uint32
	ended     moment        // when it terminated
	received  moment        // when the last message was received
	window    atomic.Uint64 // the window in which received was set
	era       atomic.Pointer[era]
	exemplars atomic.Pointer[exemplars]
}

func newKernel(r *Runtime, id string, now time.Time) *Kernel {
	k := &Kernel{runtime: r, id: id, created: now, points: newPoints(r.attributes, id)}
	k.era.Store(&era{start: now})
	return k
}

// restart resets the state and the snapshots of a kernel that is registered again.
// Its counters continue.
func (k *Kernel) restart(now time.Time) {
	k.state.Store(uint32(StateCreated))
	k.ended.forget()
	k.startEra(now)
}

// stripe is one lane's share of a kernel's counts.
type stripe struct {
	received, sent atomic.Int64
	dropped        [queues]atomic.Int64
	latency        expo.Histogram // its count is the number of processed messages
	_              [64]byte       // keeps the next stripe off this one's cache lines
}

// ID returns the kernel's ID.
func (k *Kernel) ID() string {
	if k == nil {
		return ""
	}
	return k.id
}

// Received counts a message that entered the kernel's input queue, and sets the
// time of the last message. Call it where the message is put into the queue.
func (k *Kernel) Received(ctx context.Context) {
	if k == nil {
		return
	}
	i := lane.Index()
	s := k.lanes[i].Load()
	if s == nil {
		s = k.newLane(i)
	}
	s.received.Add(1)
	if k.window.Load() != k.runtime.window.number.Load() {
		k.storeTime()
	}
	if mayHaveSpan(ctx) {
		k.exemplify(ctx, (*exemplars).atReceived, 1)
	}
}

func (k *Kernel) storeTime() {
	r := k.runtime
	number := r.window.number.Load()
	k.received.advance(r.clock())
	if !r.exactTimes {
		k.window.Store(number)
		r.window.arm()
	}
}

// Sent counts a message that the kernel put into its output queue.
func (k *Kernel) Sent(ctx context.Context) {
	if k == nil {
		return
	}
	i := lane.Index()
	s := k.lanes[i].Load()
	if s == nil {
		s = k.newLane(i)
	}
	s.sent.Add(1)
	if mayHaveSpan(ctx) {
		k.exemplify(ctx, (*exemplars).atSent, 1)
	}
}

// Dropped counts a message that was dropped because the queue q was full.
func (k *Kernel) Dropped(ctx context.Context, q Queue) {
	if k == nil || q >= queues {
		return
	}
	i := lane.Index()
	s := k.lanes[i].Load()
	if s == nil {
		s = k.newLane(i)
	}
	s.dropped[q].Add(1)
	if mayHaveSpan(ctx) {
		k.exemplify(ctx, func(e *exemplars) *slot { return &e.dropped[q] }, 1)
	}
}

// Processed counts a message that was processed successfully, and records its
// latency. A negative latency counts as 0.
func (k *Kernel) Processed(ctx context.Context, latency time.Duration) {
	if k == nil {
		return
	}
	ns := max(int64(latency), 0)
	i := lane.Index()
	s := k.lanes[i].Load()
	if s == nil {
		s = k.newLane(i)
	}
	s.latency.Record(ns)
	if mayHaveSpan(ctx) {
		k.exemplify(ctx, func(e *exemplars) *slot { return e.atLatency(ns) }, seconds(ns))
	}
}

// Error counts an error by its type. It does nothing if err is nil. Metrics never
// contain the text of err; snapshots return err as LastError.
func (k *Kernel) Error(ctx context.Context, err error) {
	if k == nil || err == nil {
		return
	}
	name := k.runtime.errorTypeOf(err) // without a lock, because it may call user code
	at := k.errors.add(&k.points, name, err)
	if mayHaveSpan(ctx) {
		k.exemplify(ctx, func(*exemplars) *slot { return at }, 1)
	}
}

// newLane creates the stripe of a lane. The recording methods repeat the lookup
// instead of sharing a function, because the compiler wouldn't inline it: a
// function call makes Sent 7% slower.
func (k *Kernel) newLane(i uint32) *stripe {
	k.lanes[i].CompareAndSwap(nil, new(stripe))
	return k.lanes[i].Load()
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
