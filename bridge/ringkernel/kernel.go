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

// Kernel records what one ring kernel does. [Runtime.Register] creates it.
//
// All methods are safe for concurrent use, and a nil *Kernel does nothing. If the
// context of a call has a sampled span, the data point gets an exemplar with the
// IDs of the span. The context is used for nothing else: recording never blocks.
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
	window    atomic.Uint64 // in which received was set
	era       atomic.Pointer[era]
	exemplars atomic.Pointer[exemplars]
}

func newKernel(r *Runtime, id string, now time.Time) *Kernel {
	k := &Kernel{runtime: r, id: id, created: now, points: newPoints(r.attributes, id)}
	k.era.Store(&era{start: now})
	return k
}

// restart puts a kernel that is registered again into its first state. Its
// counters continue.
func (k *Kernel) restart(now time.Time) {
	k.state.Store(uint32(StateCreated))
	k.ended.forget()
	k.startEra(now)
}

// stripe is one lane's share of a kernel's counts.
type stripe struct {
	received, sent atomic.Int64
	dropped        [queues]atomic.Int64
	latency        expo.Histogram // its count is the messages processed
	_              [64]byte       // keeps the next stripe off this one's cache lines
}

// ID returns the id that the kernel was registered with.
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
		k.noteTime()
	}
	if mayHaveSpan(ctx) {
		k.exemplify(ctx, (*exemplars).atReceived, 1)
	}
}

func (k *Kernel) noteTime() {
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
// latency. A negative latency, which a clock that is set back can cause, counts as
// 0.
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

// Error counts an error by its type. A nil error does nothing. The text of err
// is never reported. The LastError of snapshots is err itself.
func (k *Kernel) Error(ctx context.Context, err error) {
	if k == nil || err == nil {
		return
	}
	name := k.runtime.errorTypeOf(err) // outside all locks, because it may call the program's code
	at := k.errors.add(&k.points, name, err)
	if mayHaveSpan(ctx) {
		k.exemplify(ctx, func(*exemplars) *slot { return at }, 1)
	}
}

// newLane creates the stripe of a lane. The methods that record repeat the three
// lines that look for it, because the compiler doesn't inline them in a function
// of their own: a call makes Sent 7% slower.
func (k *Kernel) newLane(i uint32) *stripe {
	k.lanes[i].CompareAndSwap(nil, new(stripe))
	return k.lanes[i].Load()
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
