// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Agent counts the events of one agent. [Agent.Add] adds to its [Totals]. It is not
// safe for concurrent use, but [Agent.Snapshot] returns an independent copy.
type Agent struct {
	Totals

	byKey  map[seriesKey]int32 // index in Totals.series
	byType map[typeKey]int32   // the same; never larger than byKey, because a type of a series has one name

	spellings *spellings // only for rings with names
	groups    groups
	watch     *watch // nil unless transfers and errors are passed on
	work      int    // of the current call of Add
}

// NewAgent returns an agent without events.
func NewAgent(s *Shape) *Agent {
	a := new(Agent)
	a.series = make([]Series, reserved)
	a.series[overflowValued].Valued = true
	a.histograms.init(s)
	return a
}

// Next returns an agent without events that continues to count the same run: a transfer
// whose first events a has counted is still whole. The memory usage is unknown until
// [Agent.Opened] or [Agent.Restarted].
func (a *Agent) Next(s *Shape) *Agent {
	next := NewAgent(s)
	next.groups = a.groups
	return next
}

// Snapshot returns a copy of the totals. It also starts a new interval for [Totals.Utilization].
func (a *Agent) Snapshot() *Totals {
	t := a.Totals
	t.series = slices.Clone(t.series)
	for _, h := range t.list() {
		h.many = slices.Clone(h.many)
		if h.exp != nil {
			h.exp = h.exp.clone()
		}
	}
	a.health.peak = 0
	return &t
}

// The work of counting an event, in units of what one of a whole transfer takes. An agent chooses what it
// writes, so these are the costs of the most expensive events of each kind.
const (
	singleWork  = 4  // outside of a whole transfer
	lookupWork  = 20 // if its name, or its unknown type, is looked up
	errorWork   = 20 // if an error is passed on
	watchedWork = 4  // if a transfer is passed on: few are slow
)

// Add counts the events of a batch. It returns how much work that was: 1 for each event of a whole transfer,
// and more for others.
func (a *Agent) Add(b ringbuf.Batch) (work int) {
	a.work = 0
	if a.watch != nil {
		a.watch.begin(b.Layout())
	}
	switch b.Layout() {
	case ringbuf.V1:
		a.timed(b.Timed())
	case ringbuf.V2:
		a.categorized(b.Categorized())
	case ringbuf.V3:
		a.typed(b.Typed(), ringbuf.V3)
	case ringbuf.V4:
		a.typed(b.Typed(), ringbuf.V4)
	}
	return a.work
}

// typed counts events that carry only a type. In layout V4 and later, an agent
// writes the events of a transfer next to each other, so a torn group shows that
// events were lost.
func (a *Agent) typed(events []ringbuf.TypedEvent, l ringbuf.Layout) {
	for i := 0; i < len(events); i++ {
		if !a.groups.open() {
			if n := a.transfers(ringbuf.Quads(events[i:]), i); n > 0 {
				a.work += n * groupSize
				i += n*groupSize - 1
				continue
			}
		}
		a.work += singleWork
		e := &events[i]
		t, v := e.Type, e.Value
		if a.watch != nil {
			a.watch.at = i
		}
		if !l.Knows(t) {
			a.unknown(noCategory, t, v, l)
		} else if torn := a.known(t, v); l >= ringbuf.V4 {
			a.health.torn += torn
		}
	}
}

// known counts an event of a type in the catalog, and returns the number of torn
// groups that it ends.
func (a *Agent) known(t ringbuf.Type, v uint64) (torn uint64) {
	torn, whole := a.groups.add(t, v)
	if whole {
		a.transferred()
	}
	if h := a.of(t); h != nil {
		h.record(v)
		return torn
	}
	a.counters[t].record(v)
	switch {
	case t == ringbuf.TypeMemoryDeregistered:
		a.checkMemory()
	case t.IsError():
		a.failed(t)
	}
	return torn
}

// failed passes an error on.
func (a *Agent) failed(t ringbuf.Type) {
	if a.watch != nil && a.watch.Error != nil {
		a.work += errorWork
		a.watch.failed(t)
	}
}

// transferred records the measurements that need a whole group.
func (a *Agent) transferred() {
	g := &a.groups
	if a.measuresThroughput() {
		a.throughput[g.Dir].record(semconv.Throughput(g.Bytes, g.Took))
	}
	if a.watch != nil && a.watch.Transfer != nil {
		a.work += watchedWork
		a.watch.transferred(a.watch.at, Direction(g.Dir), g.Bytes, g.Took, g.Post)
	}
}

// measuresThroughput reports whether throughput is recorded. Unlike for sizes and
// times, only the histogram is of use.
func (a *Agent) measuresThroughput() bool { return a.throughput[Transmit].Kind() != NoHistogram }

// unknown counts an event whose type isn't in the catalog, or has another category
// there.
func (a *Agent) unknown(c ringbuf.Category, t ringbuf.Type, v uint64, l ringbuf.Layout) {
	a.work += lookupWork
	a.series[a.typedSeries(c, t, l)].record(v)
	if c == ringbuf.CategoryError && !ringbuf.V2.Knows(t) {
		a.otherError(v)
	}
}

// otherError counts an error with a status that isn't in the catalog.
func (a *Agent) otherError(v uint64) {
	a.otherErrors.Add(v)
	a.failed(otherError)
}
