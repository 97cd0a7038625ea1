// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Direction is the direction in which a transfer moved data, as the agent sees it.
type Direction uint8

// The directions.
const (
	Transmit Direction = iota
	Receive
)

// String returns the direction's value of the attribute [semconv.Direction].
func (d Direction) String() string { return [...]string{semconv.Transmit, semconv.Receive}[d] }

// Totals are the totals of one agent, for reading only.
type Totals struct {
	counters [ringbuf.Types]Total // for types without a histogram
	histograms
	// otherErrors counts errors with a status that isn't in the catalog.
	otherErrors Sum
	series      []Series // the first two are the overflow series
	memory      memory
	health      health
}

// Size returns the distribution of the bytes of completed transfers. Its total is the
// number of bytes moved.
func (t *Totals) Size(d Direction) *Histogram { return &t.sizes[d] }

// Duration returns the distribution of transfer times.
func (t *Totals) Duration() *Histogram { return &t.duration }

// PostDuration returns the distribution of post times.
func (t *Totals) PostDuration() *Histogram { return &t.post }

// Throughput returns the distribution of the throughput of transfers, in bytes per
// second: the bytes of each transfer divided by its time, rounded down. A time of 0 µs
// counts as 1 µs. The distribution includes only transfers whose four events were read
// in order: post time, time, bytes, requests. It is empty if its kind is [NoHistogram].
func (t *Totals) Throughput(d Direction) *Histogram { return &t.throughput[d] }

// Requests returns the number of completed transfers.
func (t *Totals) Requests(d Direction) *Total {
	return &t.counters[ringbuf.TypeTxRequests+ringbuf.Type(d)]
}

// Errors returns the number of errors with a status.
func (t *Totals) Errors(kind ringbuf.Type) *Total { return &t.counters[kind] }

// OtherErrors returns the number of errors with a status that isn't in the catalog.
func (t *Totals) OtherErrors() Sum { return t.otherErrors }

// Dropped returns the number of events that the agent reports as dropped before they
// reached the ring.
func (t *Totals) Dropped() *Total { return &t.counters[ringbuf.TypeEventsDropped] }

// Events calls fn with the number of events of each category and name that has
// occurred, except for events in [Totals.Overflow].
func (t *Totals) Events(fn func(category, name string, events uint64)) {
	for kind := range ringbuf.Type(ringbuf.Types) {
		if n := t.eventsOf(kind); n > 0 {
			fn(TypeCategory(kind), kind.String(), n)
		}
	}
	for i := range t.Series() {
		s := &t.Series()[i]
		fn(s.Category(), s.Name, s.Events)
	}
}

func (t *Totals) eventsOf(kind ringbuf.Type) uint64 {
	if h := t.of(kind); h != nil {
		return h.Count()
	}
	return t.counters[kind].Events
}

// Series returns the series of events that aren't in the catalog, in order of
// appearance. The caller must not change them.
func (t *Totals) Series() []Series { return t.series[reserved:] }

// Overflow returns the events that exceed the limit on names: those without reported
// values, and those with them.
func (t *Totals) Overflow() (plain, valued *Series) {
	return &t.series[overflowPlain], &t.series[overflowValued]
}
