// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// operation is an operation of an agent: a call of package agent, unless it has none, and the events
// that NIXL's agents write for it.
type operation struct {
	do     func(*agent.Agent)
	events []ringbuf.Event
}

func transfer(d agent.Direction, bytes int64, post, total time.Duration) operation {
	t := ringbuf.TypeTxBytes
	requests := ringbuf.TypeTxRequests
	if d == agent.Receive {
		t, requests = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
	}
	return operation{
		do: func(a *agent.Agent) { a.Transfer(context.Background(), d, bytes, post, total) },
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
		do:     func(a *agent.Agent) { a.MemoryRegistered(context.Background(), bytes) },
		events: []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, uint64(bytes))},
	}
}

func deregistered(bytes int64) operation {
	return operation{
		do:     func(a *agent.Agent) { a.MemoryDeregistered(context.Background(), bytes) },
		events: []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, uint64(bytes))},
	}
}

// errorTypes are the values of error.type, in the order of NIXL's telemetry events.
var errorTypes = []string{
	semconv.ErrorNotPosted, semconv.ErrorInvalidParam, semconv.ErrorBackend, semconv.ErrorNotFound,
	semconv.ErrorMismatch, semconv.ErrorNotAllowed, semconv.ErrorRepostActive, semconv.ErrorUnknown,
	semconv.ErrorNotSupported, semconv.ErrorRemoteDisconnect, semconv.ErrorCanceled, semconv.ErrorNoTelemetry,
}

// failed returns the operation that fails with the error type of an index.
func failed(i int) operation {
	return operation{
		do:     func(a *agent.Agent) { a.Error(context.Background(), errorTypes[i]) },
		events: []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeErrNotPosted+ringbuf.Type(i), 1)},
	}
}

func dropped(events uint64) operation {
	return operation{
		do:     func(a *agent.Agent) { a.EventsDropped(context.Background(), events) },
		events: []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeEventsDropped, events)},
	}
}

// stream returns the operations of a busy agent: transfers of many sizes and
// durations, including those on bucket bounds, memory registrations and errors.
func stream(seed uint64, n int) []operation {
	r := rand.New(rand.NewPCG(seed, 0))
	var ops []operation
	for range 4 {
		ops = append(ops, registered(r.Int64N(1<<36)))
	}
	for _, bound := range semconv.TransferDuration.Bounds {
		on := time.Duration(bound*1e9 + 0.5)
		ops = append(ops, transfer(agent.Receive, 0, 0, on), transfer(agent.Transmit, 1, on, on+time.Microsecond))
	}
	for _, bound := range semconv.TransferSize.Bounds {
		ops = append(ops, transfer(agent.Transmit, int64(bound), 0, 0), transfer(agent.Receive, int64(bound)+1, 0, 0))
	}
	for range n {
		switch p := r.Float64(); {
		case p < 0.02:
			ops = append(ops, failed(r.IntN(len(errorTypes))))
		case p < 0.03:
			ops = append(ops, registered(r.Int64N(1<<30)))
		case p < 0.04:
			ops = append(ops, deregistered(r.Int64N(1<<30)))
		default:
			total := time.Duration(r.ExpFloat64() * float64(5*time.Millisecond)) // both sides truncate it to microseconds
			post := time.Duration(r.Float64() * float64(total))
			ops = append(ops, transfer(agent.Direction(r.IntN(2)), 1<<r.IntN(34), post, total))
		}
	}
	return ops
}
