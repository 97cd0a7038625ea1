// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/lane"
	"github.com/nixl-otel/nixl-otel/bridge/internal/sampled"
)

// series holds the counts of an agent under one set of attributes.
type series struct {
	account *account
	clock   func() time.Time
	filter  sampled.Filter
	whole   bool        // of the agent itself, not of one derived by With
	classes bool        // times are counted by size class
	done    atomic.Bool // closed: nothing more is recorded

	lanes     [lane.Count]atomic.Pointer[stripe]
	last      lastValues
	errors    [statuses]atomic.Int64
	dropped   counter // events
	exemplars atomic.Pointer[exemplars]
}

func newSeries(clock func() time.Time, filter sampled.Filter, classes bool) *series {
	s := &series{clock: clock, filter: filter, classes: classes}
	s.last.init()
	return s
}

// stripe is one lane's share of the counts.
type stripe struct {
	size       [directions]histogram // bytes
	times      times
	classes    *[sizeClasses]times // instead of times; nil unless configured
	throughput [directions]rates   // bytes/s
	memory     [memoryOperations]counter
	_          [64]byte // keeps the next stripe off this one's cache lines
}

// times holds the histograms of transfer times, in µs.
type times struct{ duration, post histogram }

// sizeClasses is the number of classes of [semconv.SizeClass].
const sizeClasses = 4

// counter counts events and adds up their values. Callers update each field
// themselves, because a method for both is too large to be inlined.
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
	t := new(stripe)
	if s.classes {
		t.classes = new([sizeClasses]times)
	}
	p.CompareAndSwap(nil, t)
	return p.Load()
}

// drop counts one drop report with the given number of dropped events.
func (s *series) drop(events uint64) {
	s.dropped.sum.add(saturatedSum(events))
	s.dropped.events.Add(1)
}

// lastValues holds the last value of each kind, or -1.
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

// totals holds the counts of one or more series, except custom events.
type totals struct {
	size          [directions]distribution
	times         timesTotals
	classes       [sizeClasses]timesTotals // of series that count by size class
	throughput    [directions]distribution
	memory        [memoryOperations]total
	errors        [statuses]int64
	sampledErrors [statuses]*exemplar
	dropped       total
}

// timesTotals is the content of times.
type timesTotals struct{ duration, post distribution }

func (t *timesTotals) add(o *timesTotals) {
	t.duration.add(&o.duration)
	t.post.add(&o.post)
}

func (t *times) addTo(o *timesTotals) {
	t.duration.addTo(&o.duration)
	t.post.addTo(&o.post)
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
	t.times.add(&o.times)
	for i := range t.classes {
		t.classes[i].add(&o.classes[i])
	}
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
		l.times.addTo(&t.times)
		if l.classes != nil {
			for i := range l.classes {
				l.classes[i].addTo(&t.classes[i])
			}
		}
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
