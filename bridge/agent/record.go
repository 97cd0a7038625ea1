// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Direction is the direction of a transfer, from the agent's perspective.
type Direction uint8

// The directions. NIXL calls them write (transmit) and read (receive).
const (
	Transmit Direction = iota
	Receive

	directions = iota
)

// Transfer records a completed transfer that the agent initiated: the number of
// bytes, the time from its start until it was posted to the backend, and the time
// from its start until its completion was observed, which includes the post time.
//
// Times are truncated to whole microseconds, as NIXL's are. Negative values count
// as 0.
func (a *Agent) Transfer(ctx context.Context, d Direction, bytes int64, post, total time.Duration) {
	if !a.open() {
		return
	}
	if d != Receive {
		d = Transmit
	}
	t := transfer{bytes: max(bytes, 0), post: max(post.Microseconds(), 0), total: max(total.Microseconds(), 0)}
	if a.series != nil {
		a.series.transfer(ctx, d, t)
	}
	a.buffer.stage(
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, uint64(t.post)),
		ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(t.total)),
		ringbuf.NewEvent(ringbuf.TypeTxBytes+ringbuf.Type(d), uint64(t.bytes)),
		ringbuf.NewEvent(ringbuf.TypeTxRequests+ringbuf.Type(d), 1), // NIXL's order
	)
}

type transfer struct{ bytes, post, total int64 } // times in µs

// memoryOperation is ordered as the ring's event types are.
type memoryOperation uint8

const (
	register memoryOperation = iota
	deregister

	memoryOperations = iota
)

// MemoryRegistered records that memory was registered with the agent, in bytes.
func (a *Agent) MemoryRegistered(ctx context.Context, bytes int64) { a.memory(ctx, register, bytes) }

// MemoryDeregistered records that memory was deregistered from the agent, in
// bytes. If an agent deregisters more than it registered, nixl.memory.usage ends
// until another agent with its name is created.
func (a *Agent) MemoryDeregistered(ctx context.Context, bytes int64) {
	a.memory(ctx, deregister, bytes)
}

func (a *Agent) memory(ctx context.Context, op memoryOperation, bytes int64) {
	if !a.open() {
		return
	}
	bytes = max(bytes, 0)
	if a.series != nil {
		a.series.memory(ctx, op, bytes)
	}
	a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered+ringbuf.Type(op), uint64(bytes)))
}

// Error records a failed operation. errorType is the value of error.type that package
// semconv defines for a status of NIXL, such as semconv.ErrorBackend, or NIXL's own name of
// the status or its event, such as NIXL_ERR_BACKEND and agent_err_backend. Any other value
// counts as semconv.ErrorUnknown.
func (a *Agent) Error(ctx context.Context, errorType string) {
	if !a.open() {
		return
	}
	kind := errorKind(errorType)
	if a.series != nil {
		a.series.errors.Add(ctx, 1, a.series.errorTypes[kind-ringbuf.TypeErrNotPosted].Add...)
	}
	a.buffer.stage(ringbuf.NewEvent(kind, 1))
}

func errorKind(name string) ringbuf.Type {
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		if name == tally.ErrorName(kind) || name == kind.String() || name == kind.LegacyName() {
			return kind
		}
	}
	return ringbuf.TypeErrUnknown
}

// Event records an event of the program's own, as the backends of NIXL do: the sum of the
// values of a category and name is the metric nixl.event.value, the newest value
// nixl.event.last_value. The category is [ringbuf.CategoryConnection], CategoryBackend,
// CategorySystem or CategoryCustom; any other counts as CategoryCustom. A name has at most 31
// bytes; the rest is cut off. Names beyond the first 200 count under otel.metric.overflow = true.
//
// A ring must have the layout [ringbuf.V1] to carry the event; see [WithLayout]. Otherwise,
// the event is dropped, and OpenTelemetry's error handler gets an error once.
func (a *Agent) Event(ctx context.Context, c ringbuf.Category, name string, value uint64) {
	if !a.open() {
		return
	}
	switch c {
	case ringbuf.CategoryConnection, ringbuf.CategoryBackend, ringbuf.CategorySystem:
	default:
		c = ringbuf.CategoryCustom
	}
	e := ringbuf.NewNamedEvent(c, name, value)
	if a.series != nil {
		a.series.event(ctx, &e)
	}
	a.buffer.stage(e)
}

// EventsDropped records that the program dropped events instead of passing them to
// the agent. The agent itself counts the events that it drops because its staging
// buffer is full.
func (a *Agent) EventsDropped(ctx context.Context, events uint64) {
	if !a.open() {
		return
	}
	a.series.drop(ctx, events)
	a.buffer.stage(ringbuf.NewEvent(ringbuf.TypeEventsDropped, events))
}

func (a *Agent) open() bool { return a != nil && !a.closed.Load() }
