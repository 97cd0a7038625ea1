// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"fmt"
	"sync"
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
		k.queues.Load()[q].size.set(int64(messages))
	}
}

// SetQueueCapacity sets the number of messages that a queue can hold. Negative
// numbers count as 0.
func (k *Kernel) SetQueueCapacity(q Queue, messages int) {
	if k != nil && q < queues {
		k.queues.Load()[q].capacity.set(int64(messages))
	}
}

// ObserveQueue sets a function that returns the size and the capacity of a queue, as
// an alternative to [Kernel.SetQueueSize] and [Kernel.SetQueueCapacity]. For a
// channel:
//
//	k.ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) { return len(in), cap(in) })
//
// Snapshots and collections call the function until the kernel is unregistered;
// [Runtime.Unregister] and a further ObserveQueue wait for it. The function must be safe for
// concurrent use, and must not call methods of the Runtime or of a Kernel. A nil function restores the values
// that were set.
func (k *Kernel) ObserveQueue(q Queue, read func() (size, capacity int)) {
	if k != nil && q < queues {
		k.queues.Load()[q].observe(read)
	}
}

// queue is the size and the capacity of a queue. Unknown values aren't reported.
type queue struct {
	size, capacity gauge

	mu     sync.RWMutex // held for reading while source runs
	source func() (size, capacity int)
}

// observe sets the source. Afterwards, the previous one no longer runs.
func (q *queue) observe(source func() (size, capacity int)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.source = source
}

// read returns the values of the source, or without one the values that were set.
func (q *queue) read() (size, capacity level) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.source != nil {
		s, c := q.source()
		return level{int64(max(s, 0)), true}, level{int64(max(c, 0)), true}
	}
	return q.size.load(), q.capacity.load()
}

// load returns the values, 0 for unknown ones.
func (q *queue) load() (size, capacity int64) {
	s, c := q.read()
	return s.value, c.value
}

// gauge is a number, at least 0, that may be unknown.
type gauge struct{ word atomic.Int64 } // the number plus 1, or 0 if unknown

type level struct {
	value int64
	known bool
}

func (g *gauge) set(n int64) { g.word.Store(max(n, 0) + 1) }

func (g *gauge) load() level {
	w := g.word.Load()
	return level{max(w-1, 0), w > 0}
}

func (g *gauge) forget() { g.word.Store(0) }
