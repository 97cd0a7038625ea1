package agent

import (
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/lane"
	"github.com/nixl-otel/nixl-otel/bridge/internal/sampled"
)

// series is what an agent counts under one set of attributes.
type series struct {
	account *account
	clock   func() time.Time
	filter  sampled.Filter
	whole   bool        // counts for the agent without derived attributes
	done    atomic.Bool // closed: nothing is recorded any more

	lanes     [lane.Count]atomic.Pointer[stripe]
	last      lastValues
	errors    [statuses]atomic.Int64
	dropped   counter // events, as the agent reports it
	exemplars atomic.Pointer[exemplars]
}

func newSeries(clock func() time.Time, filter sampled.Filter) *series {
	s := &series{clock: clock, filter: filter}
	s.last.init()
	return s
}

// stripe is one lane's share of the counts.
type stripe struct {
	size           [directions]histogram // bytes
	duration, post histogram             // µs
	throughput     [directions]rates     // bytes/s
	memory         [memoryOperations]counter
	_              [64]byte // keeps the next stripe off this one's cache lines
}

// counter counts events and adds up their values. Callers add to each field
// themselves: a method for both is too large to be inlined.
type counter struct {
	sum    saturating
	events atomic.Int64
}

func (c *counter) load() total {
	return total{events: c.events.Load(), sum: c.sum.load()}
}

// lane returns the stripe of the running goroutine.
func (s *series) lane() *stripe {
	p := &s.lanes[lane.Index()]
	if t := p.Load(); t != nil {
		return t
	}
	p.CompareAndSwap(nil, new(stripe))
	return p.Load()
}

// drop counts events that were dropped, as one event.
func (s *series) drop(events uint64) {
	s.dropped.sum.add(saturatedSum(events))
	s.dropped.events.Add(1)
}

// lastValues are the latest values of each kind, or -1.
type lastValues struct {
	size           [directions]atomic.Int64
	post, duration atomic.Int64 // µs
	memory         [memoryOperations]atomic.Int64
}

func (l *lastValues) init() {
	l.duration.Store(-1)
	for d := range l.size {
		l.size[d].Store(-1)
	}
	for op := range l.memory {
		l.memory[op].Store(-1)
	}
}

func (l *lastValues) transfer(d Direction, t *transfer) {
	l.size[d].Store(t.bytes)
	l.post.Store(t.post)
	l.duration.Store(t.total)
}

// totals are the counts of series, except events of the program's own.
type totals struct {
	size           [directions]distribution
	duration, post distribution
	throughput     [directions]distribution
	memory         [memoryOperations]total
	errors         [statuses]int64
	sampledErrors  [statuses]*exemplar
	dropped        total
}

type total struct{ events, sum int64 }

func (t *total) add(o total) {
	t.events += o.events
	t.sum = saturatingSum(t.sum, o.sum)
}

func (t *totals) add(o *totals) {
	for d := range t.size {
		t.size[d].add(&o.size[d])
		t.throughput[d].add(&o.throughput[d])
	}
	t.duration.add(&o.duration)
	t.post.add(&o.post)
	for op := range t.memory {
		t.memory[op].add(o.memory[op])
	}
	for s := range t.errors {
		t.errors[s] += o.errors[s]
	}
	t.dropped.add(o.dropped)
}

// totals adds up the lanes.
func (s *series) totals() totals {
	var t totals
	for i := range s.lanes {
		l := s.lanes[i].Load()
		if l == nil {
			continue
		}
		for d := range t.size {
			l.size[d].addTo(&t.size[d])
			l.throughput[d].addTo(&t.throughput[d])
		}
		l.duration.addTo(&t.duration)
		l.post.addTo(&t.post)
		for op := range t.memory {
			t.memory[op].add(l.memory[op].load())
		}
	}
	for e := range t.errors {
		t.errors[e] = s.errors[e].Load()
	}
	t.dropped = s.dropped.load()
	return t
}
