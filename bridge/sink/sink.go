// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Event is one telemetry event of an agent.
type Event struct {
	// Agent is the agent's name.
	Agent string
	// Time is when the event was recorded. Events in rings of layout v2 and later have
	// no time; for these, Time is when they were read, normally within a run interval.
	Time time.Time
	// Category is the category of the event, or -1 if its type is unknown.
	Category ringbuf.Category
	// Name is the event's name, such as agent_tx_bytes, or unknown_event_21 for an
	// unknown type. It is valid UTF-8.
	Name string
	// Value is the value of this event, not a running total: bytes, microseconds (for
	// agent_xfer_time and agent_xfer_post_time), or a number of requests, errors or
	// dropped events.
	Value uint64
}

// NewEvent returns an event of an agent's ring with a layout, which was read at a time. A
// type that the layout doesn't define is unknown, even if a newer layout defines it: its
// meaning may differ.
func NewEvent(agent string, l ringbuf.Layout, e *ringbuf.Event, read time.Time) Event {
	out := Event{Agent: agent, Time: read, Category: e.Category, Name: l.TypeName(e.Type), Value: e.Value}
	if e.Named {
		out.Name = text.Valid(e.Name.String())
	}
	if l == ringbuf.V1 {
		out.Time = time.UnixMicro(int64(min(e.TimestampMicros, math.MaxInt64)))
	}
	return out
}

// Sink receives events.
type Sink interface {
	// Write receives a batch of events of one agent, in the order in which the agent
	// recorded them. It must not retain the slice, which is reused.
	//
	// An agent or a rings.Producer calls Write from one goroutine at a time and waits
	// for it to return; meanwhile, the ring isn't drained or the agent isn't flushed.
	// If Write returns an error, the error is reported and the batch isn't retried. A panic
	// ends the program.
	//
	// Write must not call methods of its caller: Flush and Close of an Agent, and all
	// methods of a rings.Producer, wait for Write to return.
	//
	// A sink with several callers must be safe for concurrent use.
	Write(events []Event) error
}

// Func is a function that implements [Sink].
type Func func(events []Event) error

// Write calls f.
func (f Func) Write(events []Event) error { return f(events) }
