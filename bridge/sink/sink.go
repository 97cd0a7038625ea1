// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Event is one telemetry event of an agent.
type Event struct {
	// Agent is the agent's name.
	Agent string
	// Time is when the event was recorded. Rings of layout v2 and later have no
	// times; for their events, it is when they were read, at most a run interval
	// later if the reader keeps up.
	Time time.Time
	// Category is the ring's, or follows from the event's type. It is -1 for an
	// unknown type.
	Category ringbuf.Category
	// Name is the event's name, such as agent_tx_bytes, or unknown_event_21 for
	// an unknown type. It is any valid UTF-8.
	Name string
	// Value is that of this event, not a running total: bytes, microseconds (for
	// agent_xfer_time and agent_xfer_post_time), or a number of requests, errors
	// or dropped events.
	Value uint64
}

// Sink receives events.
type Sink interface {
	// Write receives a batch of events of one agent, in the order in which the
	// agent recorded them. It must not retain the slice, which is reused.
	//
	// The caller calls Write from one goroutine at a time and waits for it: until
	// it returns, a ring isn't drained, or an agent's next events stay staged. An
	// error is reported, and the batch isn't passed again.
	//
	// Write must not call methods of its caller: Flush, Close and RingTelemetry of
	// an Agent, and all methods of a rings.Producer, wait for Write to return.
	//
	// A sink with several callers must be safe for concurrent use.
	Write(events []Event) error
}

// Func is a function that is a [Sink].
type Func func(events []Event) error

// Write calls f.
func (f Func) Write(events []Event) error { return f(events) }
