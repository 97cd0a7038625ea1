//go:build linux

package parity

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// operation is something that an agent did: a call of the bridge, and the
// events that NIXL's agents write for it.
type operation struct {
	do     func(*bridge.Agent)
	events []ringbuf.Event
}

func transfer(d bridge.Direction, bytes int64, post, total time.Duration) operation {
	t := ringbuf.TypeTxBytes
	requests := ringbuf.TypeTxRequests
	if d == bridge.Receive {
		t, requests = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
	}
	return operation{
		do: func(a *bridge.Agent) { a.Transfer(d, bytes, post, total) },
		events: []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, uint64(post/time.Microsecond)),
			ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(total/time.Microsecond)),
			ringbuf.NewEvent(t, uint64(bytes)),
			ringbuf.NewEvent(requests, 1),
		},
	}
}

func registered(bytes int64) operation {
	return operation{
		do:     func(a *bridge.Agent) { a.MemoryRegistered(bytes) },
		events: []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, uint64(bytes))},
	}
}

func deregistered(bytes int64) operation {
	return operation{
		do:     func(a *bridge.Agent) { a.MemoryDeregistered(bytes) },
		events: []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, uint64(bytes))},
	}
}

var errorTypes = map[bridge.Status]ringbuf.Type{
	bridge.StatusNotPosted:        ringbuf.TypeErrNotPosted,
	bridge.StatusInvalidParam:     ringbuf.TypeErrInvalidParam,
	bridge.StatusBackend:          ringbuf.TypeErrBackend,
	bridge.StatusNotFound:         ringbuf.TypeErrNotFound,
	bridge.StatusMismatch:         ringbuf.TypeErrMismatch,
	bridge.StatusNotAllowed:       ringbuf.TypeErrNotAllowed,
	bridge.StatusRepostActive:     ringbuf.TypeErrRepostActive,
	bridge.StatusUnknown:          ringbuf.TypeErrUnknown,
	bridge.StatusNotSupported:     ringbuf.TypeErrNotSupported,
	bridge.StatusRemoteDisconnect: ringbuf.TypeErrRemoteDisconnect,
	bridge.StatusCanceled:         ringbuf.TypeErrCanceled,
	bridge.StatusNoTelemetry:      ringbuf.TypeErrNoTelemetry,
}

func failed(s bridge.Status) operation {
	return operation{
		do:     func(a *bridge.Agent) { a.Error(s) },
		events: []ringbuf.Event{ringbuf.NewEvent(errorTypes[s], 1)},
	}
}

func dropped(events uint64) operation {
	return operation{
		do:     func(a *bridge.Agent) { a.EventsDropped(events) },
		events: []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeEventsDropped, events)},
	}
}

var categories = map[bridge.EventCategory]ringbuf.Category{
	bridge.EventCustom:     ringbuf.CategoryCustom,
	bridge.EventConnection: ringbuf.CategoryConnection,
	bridge.EventBackend:    ringbuf.CategoryBackend,
	bridge.EventSystem:     ringbuf.CategorySystem,
}

func event(c bridge.EventCategory, name string, value uint64) operation {
	return operation{
		do:     func(a *bridge.Agent) { a.Event(c, name, value) },
		events: []ringbuf.Event{ringbuf.NewNamedEvent(categories[c], name, value)},
	}
}

// stream is what a busy agent does: transfers of all sizes and times, those on
// the buckets' bounds among them, memory that comes and goes, and errors.
func stream(seed uint64, n int) []operation {
	r := rand.New(rand.NewPCG(seed, 0))
	var ops []operation
	for range 4 {
		ops = append(ops, registered(r.Int64N(1<<36)))
	}
	for _, bound := range semconv.DurationBounds() {
		on := time.Duration(bound*1e9 + 0.5)
		ops = append(ops, transfer(bridge.Receive, 0, 0, on), transfer(bridge.Transmit, 1, on, on+time.Microsecond))
	}
	for _, bound := range semconv.SizeBounds() {
		ops = append(ops, transfer(bridge.Transmit, int64(bound), 0, 0), transfer(bridge.Receive, int64(bound)+1, 0, 0))
	}
	for range n {
		switch p := r.Float64(); {
		case p < 0.02:
			ops = append(ops, failed(bridge.Status(r.IntN(len(errorTypes)))))
		case p < 0.03:
			ops = append(ops, registered(r.Int64N(1<<30)))
		case p < 0.04:
			ops = append(ops, deregistered(r.Int64N(1<<30)))
		default:
			total := time.Duration(r.ExpFloat64() * float64(5*time.Millisecond)) // nanoseconds are cut
			post := time.Duration(r.Float64() * float64(total))
			ops = append(ops, transfer(bridge.Direction(r.IntN(2)), 1<<r.IntN(34), post, total))
		}
	}
	return ops
}

// ownEvents are more names of an agent's own than are told apart.
func ownEvents() []operation {
	var ops []operation
	for i := range 230 {
		c := bridge.EventCategory(i % len(categories))
		ops = append(ops, event(c, fmt.Sprint("metric_", i), uint64(i)), event(c, fmt.Sprint("metric_", i), 3))
	}
	return append(ops,
		// The SDK has its sums pass through float64, and rounds them past 2^53.
		event(bridge.EventBackend, "metric_2", 1<<52),
		event(bridge.EventBackend, "not UTF-8 \xff", 1),
		event(bridge.EventCustom, "a name that is longer than a ring has room for", 1),
	)
}
