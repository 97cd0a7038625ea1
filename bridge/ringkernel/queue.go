// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"fmt"
	"sync/atomic"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Queue identifies one of a kernel's two queues.
type Queue uint8

// The queues of a kernel.
const (
	InputQueue Queue = iota
	OutputQueue

	queues = iota
)

var queueNames = [queues]string{semconv.QueueInput, semconv.QueueOutput}

// String returns the queue's name, as in the attribute ringkernel.queue.name.
func (q Queue) String() string {
	if q >= queues {
		return fmt.Sprintf("Queue(%d)", uint8(q))
	}
	return queueNames[q]
}

// SetQueueSize sets the number of messages in a queue. Negative numbers count as 0.
func (k *Kernel) SetQueueSize(q Queue, messages int) {
	if k != nil && q < queues {
		k.queues[q].size.set(messages)
	}
}

// SetQueueCapacity sets the number of messages that a queue can hold. Negative
// numbers count as 0.
func (k *Kernel) SetQueueCapacity(q Queue, messages int) {
	if k != nil && q < queues {
		k.queues[q].capacity.set(messages)
	}
}

// ObserveQueue sets a function that returns the size and the capacity of a queue, as
// an alternative to [Kernel.SetQueueSize] and [Kernel.SetQueueCapacity]. For a
// channel:
//
//	k.ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) { return len(in), cap(in) })
//
// Snapshots and collections call the function until the kernel is unregistered. It
// must be safe for concurrent use. A nil function restores the values that were set.
func (k *Kernel) ObserveQueue(q Queue, read func() (size, capacity int)) {
	switch {
	case k == nil || q >= queues:
	case read == nil:
		k.queues[q].source.Store(nil)
	default:
		k.queues[q].source.Store(&read)
	}
}

// queue is the size and the capacity of a queue. Unknown values aren't reported.
type queue struct {
	size, capacity gauge
	source         atomic.Pointer[func() (size, capacity int)]
}

// read returns the values of the source, or without one the values that were set.
func (q *queue) read() (size, capacity level) {
	if f := q.source.Load(); f != nil {
		s, c := (*f)()
		return level{int64(max(s, 0)), true}, level{int64(max(c, 0)), true}
	}
	return q.size.load(), q.capacity.load()
}

func (q *queue) forget() {
	q.size.word.Store(0)
	q.capacity.word.Store(0)
	q.source.Store(nil)
}

// gauge is a number of messages that may be unknown.
type gauge struct{ word atomic.Int64 } // the number plus 1, or 0 if unknown

type level struct {
	messages int64
	known    bool
}

func (g *gauge) set(n int) { g.word.Store(int64(max(n, 0)) + 1) }

func (g *gauge) load() level {
	w := g.word.Load()
	return level{max(w-1, 0), w > 0}
}
