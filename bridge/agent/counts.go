package agent

import (
	"sync/atomic"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// counter counts events and adds up their values. Each is added to where
// it is called: a method for both is too large to be inlined.
type counter struct {
	sum    saturating
	events atomic.Int64
}

func (c *counter) load() total {
	return total{events: c.events.Load(), sum: c.sum.load()}
}

// stripe is one lane's share of an agent's counts.
type stripe struct {
	bytes     [directions]saturating
	transfers [directions]atomic.Int64
	memory    [memoryOperations]counter
	_         [64]byte // keeps the next stripe off this one's cache lines
}

// totals are what an agent counted, but for events of its own.
type totals struct {
	bytes, transfers [directions]int64
	memory           [memoryOperations]total
	errors           [statuses]int64
	dropped          total
}

type total struct{ events, sum int64 }

func (t *total) add(o total) {
	t.events += o.events
	t.sum = saturatingSum(t.sum, o.sum)
}

func (t *totals) add(o *totals) {
	for d := range t.bytes {
		t.transfers[d] += o.transfers[d]
		t.bytes[d] = saturatingSum(t.bytes[d], o.bytes[d])
	}
	for op := range t.memory {
		t.memory[op].add(o.memory[op])
	}
	for s := range t.errors {
		t.errors[s] += o.errors[s]
	}
	t.dropped.add(o.dropped)
}

func (a *Agent) totals() totals {
	var t totals
	for i := range a.lanes {
		s := a.lanes[i].Load()
		if s == nil {
			continue
		}
		for d := range t.bytes {
			t.transfers[d] += s.transfers[d].Load()
			t.bytes[d] = saturatingSum(t.bytes[d], s.bytes[d].load())
		}
		for op := range t.memory {
			t.memory[op].add(s.memory[op].load())
		}
	}
	for s := range t.errors {
		t.errors[s] = a.errors[s].Load()
	}
	t.dropped = a.dropped.load()
	return t
}

// lastValues are the newest of each kind. They are stored before the event is
// counted, so that what was counted has one.
type lastValues struct {
	size           [directions]atomic.Int64
	post, duration atomic.Int64 // µs
	memory         [memoryOperations]atomic.Int64
}

func (l *lastValues) transfer(d Direction, bytes, post, total int64) {
	l.size[d].Store(bytes)
	l.post.Store(post)
	l.duration.Store(total)
}

// transferEvents are a transfer's events, in NIXL's order.
func transferEvents(d Direction, bytes, post, total uint64) [4]ringbuf.Event {
	return [4]ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, post),
		ringbuf.NewEvent(ringbuf.TypeXferTime, total),
		ringbuf.NewEvent(ringbuf.TypeTxBytes+ringbuf.Type(d), bytes),
		ringbuf.NewEvent(ringbuf.TypeTxRequests+ringbuf.Type(d), 1),
	}
}
