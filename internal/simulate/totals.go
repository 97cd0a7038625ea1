// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Totals are the totals of one or more agents. The field names of their JSON are stable.
type Totals struct {
	Layout   string `json:"layout"`   // of the newest life; "mixed" in a sum of different layouts
	Capacity int    `json:"capacity"` // of the newest life; 0 in a sum of different capacities
	Starts   int    `json:"starts"`   // number of lives
	Flushes  uint64 `json:"flushes"`

	Operations uint64 `json:"operations"` // attempted transfers
	Failed     uint64 `json:"failed"`     // transfers that ended in an error

	// Every event belongs to exactly one of these.
	Written        Written `json:"written"`         // reached the ring
	DroppedStaging Events  `json:"dropped_staging"` // staging was full
	DroppedRing    Events  `json:"dropped_ring"`    // the ring was full
	Discarded      Events  `json:"discarded"`       // the life ended without a flush

	// These events are also in Written.
	Unread  Events `json:"unread_at_restart"` // in the ring when a later life reused it
	Pending int    `json:"pending_at_end"`    // in the ring when the newest life ended
}

// Events are events by name.
type Events struct {
	Events uint64  `json:"events"` // number of events
	ByName []Named `json:"by_name,omitempty"`
}

// Named is the sum of the events with one name. Errors have other names in layout V1.
type Named struct {
	Category  string `json:"category"` // as in nixl.event.category
	Name      string `json:"name"`
	Count     uint64 `json:"count"`
	Sum       uint64 `json:"sum"`                 // sum of values, modulo 2^64
	Last      uint64 `json:"last"`                // newest value; in a sum over agents, the largest one
	Overflows uint64 `json:"overflows,omitempty"` // number of times that Sum has wrapped
}

// Written are the events that reached the ring, by the names of the catalog.
type Written struct {
	Events

	Transmit     Direction    `json:"transmit"` // writes
	Receive      Direction    `json:"receive"`  // reads
	Duration     Distribution `json:"duration"`
	PostDuration Distribution `json:"post_duration"`

	MemoryRegistered   uint64            `json:"memory_registered"`   // bytes
	MemoryDeregistered uint64            `json:"memory_deregistered"` // bytes
	Errors             map[string]uint64 `json:"errors"`              // by error.type
	ReportedDropped    uint64            `json:"reported_dropped"`    // dropped events that the agent reported
}

// Direction contains the transfers in one direction.
type Direction struct {
	Bytes    uint64       `json:"bytes"`
	Requests uint64       `json:"requests"`
	Size     Distribution `json:"size"` // bytes

	// Throughput is the throughput, in bytes per second, of transfers whose four
	// events were written in a row.
	Throughput Distribution `json:"throughput"`
}

// Named returns the sum of one name. Its Count is 0 if there were no events.
func (e *Events) Named(category, name string) Named {
	for _, n := range e.ByName {
		if n.Category == category && n.Name == name {
			return n
		}
	}
	return Named{Category: category, Name: name}
}

// Dropped returns the number of events that didn't reach the ring.
func (t *Totals) Dropped() uint64 {
	return t.DroppedStaging.Events + t.DroppedRing.Events + t.Discarded.Events
}

// Totals returns the agent's totals so far.
func (a *Agent) Totals() Totals {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.staging
	t := Totals{
		Starts: a.started, Flushes: a.flushes,
		Operations: a.operations, Failed: a.failed,
		Written:        s.totals(),
		DroppedStaging: s.stagingFull.totals(),
		DroppedRing:    s.ringFull.totals(),
		Discarded:      s.discarded.totals(),
		Unread:         a.unread.totals(),
		Pending:        a.pending,
	}
	if a.started > 0 {
		t.Layout, t.Capacity = s.layout.String(), s.capacity
	}
	if a.w != nil {
		t.Pending, _ = a.w.Len() // the next flush reports an error of the ring
	}
	return t
}

// totals returns the sums by name. Most names are the same in all layouts.
func (s *sums) totals() Events {
	e := Events{Events: s.events()}
	add := func(k kind, l ringbuf.Layout, of sum) {
		if of.count > 0 {
			e.ByName = append(e.ByName, Named{
				Category: k.category(), Name: k.name(l),
				Count: of.count, Sum: of.sum, Last: of.last, Overflows: of.overflows,
			})
		}
	}
	for k := range kinds {
		if k.name(ringbuf.V1) == k.name(ringbuf.V4) {
			add(k, ringbuf.V4, s.both(k))
			continue
		}
		add(k, ringbuf.V4, s.by[0][k])
		add(k, ringbuf.V1, s.by[1][k])
	}
	sortNames(e.ByName)
	return e
}

func sortNames(names []Named) {
	slices.SortFunc(names, func(a, b Named) int {
		return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Name, b.Name))
	})
}

func (s *staging) totals() Written {
	w := s.distributions.totals()
	w.Events = s.written.totals()
	for d, one := range []*Direction{&w.Transmit, &w.Receive} {
		one.Bytes = s.of(ringbuf.TypeTxBytes + ringbuf.Type(d)).sum
		one.Requests = s.of(ringbuf.TypeTxRequests + ringbuf.Type(d)).sum
	}
	w.MemoryRegistered = s.of(ringbuf.TypeMemoryRegistered).sum
	w.MemoryDeregistered = s.of(ringbuf.TypeMemoryDeregistered).sum
	w.ReportedDropped = s.of(ringbuf.TypeEventsDropped).sum
	w.Errors = make(map[string]uint64)
	for t := ringbuf.TypeErrNotPosted; t.IsError(); t++ {
		if n := s.of(t).sum; n > 0 {
			w.Errors[errorType(t)] = n
		}
	}
	return w
}

// of returns the sum of the written events of one type.
func (s *staging) of(t ringbuf.Type) sum { return s.written.both(kind(t)) }
