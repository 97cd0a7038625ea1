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
	// times: for their events it is when they were read, at most a run interval
	// later while a reader keeps up.
	Time time.Time
	// Category is what the ring says, or what follows from the event's type;
	// -1 for a type that isn't known.
	Category ringbuf.Category
	// Name is the event's name, such as agent_tx_bytes, or unknown_event_21 for
	// a type that isn't known. It is valid UTF-8, and may be anything else.
	Name string
	// Value is of this event alone, never a running total: bytes, microseconds
	// for agent_xfer_time and agent_xfer_post_time, and a number of requests,
	// errors or dropped events.
	Value uint64
}

// Sink takes events.
type Sink interface {
	// Write takes a batch of events of one agent, in the order in which the
	// agent recorded them. It must not keep the slice, which is used again.
	//
	// Whoever feeds a sink calls it from one goroutine at a time, and waits:
	// while it writes, a ring isn't drained, or an agent's next events are
	// staged. Its error is reported, and the batch isn't offered again.
	//
	// So Write must not call its feeder back. An Agent's Flush, Close and
	// RingTelemetry wait for a Write that runs, and would wait forever within
	// it; so does everything of a Producer, and what collects from it.
	//
	// A sink with several feeders must be safe for concurrent use.
	Write(events []Event) error
}

// Func is a function that is a [Sink].
type Func func(events []Event) error

// Write calls f.
func (f Func) Write(events []Event) error { return f(events) }
