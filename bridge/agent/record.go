// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
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
		a.series.transfer(ctx, d, t)
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

// MemoryRegistered records that memory was registered with the agent, in bytes.
func (a *Agent) MemoryRegistered(ctx context.Context, bytes int64) {
	if a == nil || a.closed.Load() {
		return
	}
	bytes = max(bytes, 0)
	if a.series != nil {
		a.series.registered.Add(ctx, bytes, a.series.agent.add...)
		a.series.memory(register, bytes, bytes)
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
		a.series.deregistered.Add(ctx, bytes, a.series.agent.add...)
		a.series.memory(deregister, bytes, -bytes)
	}
	if a.buffer != nil {
		a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, uint64(bytes)))
	}
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
		a.series.errors.Add(ctx, 1, a.series.errorTypes[i].add...)
	}
	if a.buffer != nil {
		a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeErrNotPosted+ringbuf.Type(i), 1))
	}
}

// EventsDropped records that the program dropped events instead of passing them to
// the agent. The agent itself counts the events that it drops because its staging
// buffer is full.
func (a *Agent) EventsDropped(ctx context.Context, events uint64) {
	if a == nil || a.closed.Load() {
		return
	}
	a.series.drop(ctx, events)
	if a.buffer != nil {
		a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeEventsDropped, events))
	}
}
