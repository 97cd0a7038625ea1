// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Transfer records a completed transfer that the agent initiated: the number of
// bytes, the time from its start until it was posted to the backend, and the time
// from its start until its completion was observed, which includes the post time.
//
// Times are truncated to whole microseconds, as NIXL's are. Negative values count
// as 0.
func (a *Agent) Transfer(ctx context.Context, d Direction, bytes int64, post, total time.Duration) {
	if a == nil || a.closed.Load() {
		return
	}
	if d != Receive {
		d = Transmit
	}
	t := transfer{bytes: max(bytes, 0), post: max(post.Microseconds(), 0), total: max(total.Microseconds(), 0)}
	if a.series != nil {
		a.transfer(ctx, a.instruments, d, t)
	}
	if a.buffer != nil {
		a.buffer.stage(
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, uint64(t.post)),
			ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(t.total)),
			ringbuf.NewEvent(ringbuf.TypeTxBytes+ringbuf.Type(d), uint64(t.bytes)),
			ringbuf.NewEvent(ringbuf.TypeTxRequests+ringbuf.Type(d), 1), // NIXL's order
		)
	}
}

type transfer struct{ bytes, post, total int64 } // times in µs

func (s *series) transfer(ctx context.Context, i *instruments, d Direction, t transfer) {
	direction := &s.direction[d]
	i.io.Add(ctx, t.bytes, direction.add...)
	i.requests.Add(ctx, 1, direction.add...)
	i.size.Record(ctx, float64(t.bytes), direction.record...)
	i.throughput.Record(ctx, float64(semconv.Throughput(uint64(t.bytes), uint64(t.total))), direction.record...)
	i.duration.Record(ctx, seconds(t.total), s.agent.record...)
	i.post.Record(ctx, seconds(t.post), s.agent.record...)
	s.last.size[d].Store(t.bytes)
	s.last.post.Store(t.post)
	s.last.duration.Store(t.total)
}

// MemoryRegistered records that memory was registered with the agent, in bytes.
func (a *Agent) MemoryRegistered(ctx context.Context, bytes int64) {
	if a == nil || a.closed.Load() {
		return
	}
	bytes = max(bytes, 0)
	if a.series != nil {
		a.instruments.registered.Add(ctx, bytes, a.agent.add...)
		a.memory(register, bytes, bytes)
	}
	if a.buffer != nil {
		a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, uint64(bytes)))
	}
}

// MemoryDeregistered records that memory was deregistered from the agent, in
// bytes. If an agent deregisters more than it registered, nixl.memory.usage ends
// until another agent with its name is created.
func (a *Agent) MemoryDeregistered(ctx context.Context, bytes int64) {
	if a == nil || a.closed.Load() {
		return
	}
	bytes = max(bytes, 0)
	if a.series != nil {
		a.instruments.deregistered.Add(ctx, bytes, a.agent.add...)
		a.memory(deregister, bytes, -bytes)
	}
	if a.buffer != nil {
		a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, uint64(bytes)))
	}
}

func (s *series) memory(op memoryOperation, bytes, change int64) {
	s.last.memory[op].Store(bytes)
	if s.balance.Add(change) < 0 {
		s.usageBroken.Store(true)
	}
	s.memoryUsed.Store(true)
}

// Error records a failed operation. errorType is the value of error.type that package
// semconv defines for a status of NIXL, such as semconv.ErrorBackend. Any other value
// counts as semconv.ErrorUnknown.
func (a *Agent) Error(ctx context.Context, errorType string) {
	if a == nil || a.closed.Load() {
		return
	}
	i := slices.Index(errorNames[:], errorType)
	if i < 0 {
		i = slices.Index(errorNames[:], semconv.ErrorUnknown)
	}
	if a.series != nil {
		a.instruments.errors.Add(ctx, 1, a.errors[i].add...)
	}
	if a.buffer != nil {
		a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeErrNotPosted+ringbuf.Type(i), 1))
	}
}

// Event records a custom event. For each name, the metrics are the sum of the values
// and the last value. A name ends at its first NUL or after 31 bytes, as in a ring.
//
// The category is one of those that NIXL reserves for backends and applications:
// [ringbuf.CategoryCustom], [ringbuf.CategoryConnection], [ringbuf.CategoryBackend] or
// [ringbuf.CategorySystem]. Any other counts as custom. Only rings of layout V1
// carry custom events.
func (a *Agent) Event(ctx context.Context, c ringbuf.Category, name string, value uint64) {
	if a == nil || a.closed.Load() {
		return
	}
	switch c {
	case ringbuf.CategoryConnection, ringbuf.CategoryBackend, ringbuf.CategorySystem:
	default:
		c = ringbuf.CategoryCustom
	}
	cut := ringbuf.MakeName(name)
	if a.series != nil {
		p, v := a.named.of(a.series, c, cut.Bytes()), number(value)
		a.instruments.eventValue.Add(ctx, v, p.add...)
		a.instruments.eventLast.Record(ctx, v, p.record...)
	}
	if a.buffer != nil {
		a.buffer.stage(ringbuf.Event{Category: c, Named: true, Name: cut, Value: value})
	}
}

// EventsDropped records that the program dropped events instead of passing them to
// the agent. The agent itself counts the events that it drops because its staging
// buffer is full.
func (a *Agent) EventsDropped(ctx context.Context, events uint64) {
	if a == nil || a.closed.Load() {
		return
	}
	if a.series != nil {
		a.instruments.dropped.Add(ctx, number(events), a.agent.add...)
	}
	if a.buffer != nil {
		a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeEventsDropped, events))
	}
}

// drop counts events that were dropped from the staging buffer, which an agent shares with
// the agents derived from it.
func (c *core) drop(ctx context.Context, events uint64) {
	if c.instruments != nil {
		c.instruments.dropped.Add(ctx, number(events), c.root.agent.add...)
	}
}

// number converts a value to that of an instrument.
func number(v uint64) int64 { return int64(min(v, math.MaxInt64)) }
