// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Direction is the direction in which a transfer moved data, as the agent sees it.
type Direction uint8

// The directions.
const (
	Transmit Direction = iota
	Receive
)

// Totals are the totals of one agent, for reading only.
type Totals struct {
	counters [ringbuf.Types]Total // of the types without a histogram
	sizes    [2]Histogram         // by Direction
	duration Histogram
	post     Histogram
	// throughput is that of whole transfers, by Direction.
	throughput [2]Histogram
	classes    *classes // of times; nil unless configured
	// otherErrors are errors of a status that isn't in the catalog.
	otherErrors Sum
	series      []Series // the first two are those past the limit
	memory      memory
	health      health
}

// copyFrom makes t a copy of from that shares no memory with it, and reuses
// the memory that t has.
func (t *Totals) copyFrom(from *Totals) {
	t.counters = from.counters
	for d := range t.sizes {
		t.sizes[d].copyFrom(&from.sizes[d])
		t.throughput[d].copyFrom(&from.throughput[d])
	}
	t.duration.copyFrom(&from.duration)
	t.post.copyFrom(&from.post)
	t.classes = t.classes.copyOf(from.classes)
	t.otherErrors = from.otherErrors
	clear(t.series[min(len(from.series), len(t.series)):]) // don't keep the names of another agent alive
	t.series = append(t.series[:0], from.series...)
	t.memory, t.health = from.memory, from.health
}

// Size is the distribution of the bytes of completed transfers. Its total is
// the number of bytes moved.
func (t *Totals) Size(d Direction) *Histogram { return &t.sizes[d] }

// Duration is the distribution of transfer times.
func (t *Totals) Duration() *Histogram { return &t.duration }

// PostDuration is the distribution of post times.
func (t *Totals) PostDuration() *Histogram { return &t.post }

// Throughput is the distribution of the throughput of transfers, in bytes per
// second: the bytes of each transfer divided by its time. Bytes per second are
// whole numbers, rounded down, and a time of 0 µs counts as 1 µs. It has only
// transfers whose four events are all known and in order: post time, time,
// bytes, requests. It is empty if its kind is [NoHistogram].
func (t *Totals) Throughput(d Direction) *Histogram { return &t.throughput[d] }

// Requests is the number of completed transfers.
func (t *Totals) Requests(d Direction) *Total {
	return &t.counters[ringbuf.TypeTxRequests+ringbuf.Type(d)]
}

// Errors is the number of errors of a status.
func (t *Totals) Errors(kind ringbuf.Type) *Total { return &t.counters[kind] }

// OtherErrors is the number of errors of a status that isn't in the catalog.
func (t *Totals) OtherErrors() Sum { return t.otherErrors }

// Dropped is the number of events that the agent reports to have dropped
// before they reached the ring.
func (t *Totals) Dropped() *Total { return &t.counters[ringbuf.TypeEventsDropped] }

// Events calls fn with the number of events of each category and name that
// occurred, except for those in [Totals.Overflow].
func (t *Totals) Events(fn func(category, name string, events uint64)) {
	for kind := range ringbuf.Type(ringbuf.Types) {
		if n := t.eventsOf(kind); n > 0 {
			fn(TypeCategory(kind), kind.String(), n)
		}
	}
	for i := range t.Series() {
		s := &t.Series()[i]
		fn(s.Category, s.Name, s.Events)
	}
}

func (t *Totals) eventsOf(kind ringbuf.Type) uint64 {
	switch kind {
	case ringbuf.TypeTxBytes, ringbuf.TypeRxBytes:
		return t.sizes[kind].Count()
	case ringbuf.TypeXferTime:
		return t.duration.Count()
	case ringbuf.TypeXferPostTime:
		return t.post.Count()
	default:
		return t.counters[kind].Events
	}
}

// Series are the events beyond the catalog, in order of appearance. They must
// not be changed.
func (t *Totals) Series() []Series { return t.series[reserved:] }

// Overflow is the events beyond the catalog and past the limit on names: those
// without a value of their own, and those with one.
func (t *Totals) Overflow() (plain, valued *Series) {
	return &t.series[overflowPlain], &t.series[overflowValued]
}
