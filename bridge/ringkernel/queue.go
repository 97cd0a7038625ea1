package ringkernel

import (
	"fmt"
	"sync/atomic"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Queue is one of a kernel's two queues.
type Queue uint8

// The queues of a kernel.
const (
	InputQueue Queue = iota
	OutputQueue

	queues = iota
)

var queueNames = [queues]string{semconv.QueueInput, semconv.QueueOutput}

// String is the queue's name, as the attribute ringkernel.queue.name has it.
func (q Queue) String() string {
	if q >= queues {
		return fmt.Sprintf("Queue(%d)", uint8(q))
	}
	return queueNames[q]
}

// queue is what is known of a queue. What was never set is not reported.
type queue struct {
	size, capacity gauge
	source         atomic.Pointer[func() (size, capacity int)]
}

// read asks the queue's source, if it has one, and else says what was set.
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

// gauge is a number of messages that may not be known.
type gauge struct{ word atomic.Int64 } // one more than the number, 0 when unknown

type level struct {
	messages int64
	known    bool
}

func (g *gauge) set(n int) { g.word.Store(int64(max(n, 0)) + 1) }

func (g *gauge) load() level {
	w := g.word.Load()
	return level{max(w-1, 0), w > 0}
}
