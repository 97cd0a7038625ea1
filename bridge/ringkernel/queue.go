// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"sync"

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

// ObserveQueue sets a function that returns the number of messages in a queue, and how many
// it can hold. Negative numbers count as 0. For a channel:
//
//	k.ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) { return len(in), cap(in) })
//
// Snapshots and collections call the function until the kernel is unregistered, which calls it
// for the last time; [Runtime.Unregister] and a further ObserveQueue wait for it. The function must be safe for
// concurrent use, and must not call methods of the Runtime or of a Kernel. With a nil
// function, the size is unknown.
func (k *Kernel) ObserveQueue(q Queue, read func() (size, capacity int)) {
	if k != nil && q < queues {
		k.queues[q].observe(read)
	}
}

// queue reads the size and the capacity of a queue.
type queue struct {
	mu     sync.RWMutex // held for reading while source runs
	source func() (size, capacity int)
}

// observe sets the source. Afterwards, the previous one no longer runs.
func (q *queue) observe(source func() (size, capacity int)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.source = source
}

// freeze reads the queue for the last time.
func (q *queue) freeze() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.source != nil {
		size, capacity := q.source()
		q.source = func() (int, int) { return size, capacity }
	}
}

// read returns ok = false without a source.
func (q *queue) read() (size, capacity int64, ok bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.source == nil {
		return 0, 0, false
	}
	s, c := q.source()
	return int64(max(s, 0)), int64(max(c, 0)), true
}
