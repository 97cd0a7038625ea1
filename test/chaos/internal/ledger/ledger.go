// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ledger adds up events by their names, as agents write them, and says
// what metrics they come to, by a reading of the catalog of its own.
package ledger

import (
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Name is what an event is called.
type Name struct {
	Category string // as in nixl.event.category
	Name     string // as the ring spells or numbers it
}

// Sums are of the events of one name.
type Sums struct{ Count, Sum uint64 }

// Ledger is the sums of some events.
type Ledger map[Name]Sums

// Add adds all that another ledger has.
func (l Ledger) Add(o Ledger) {
	for n, s := range o {
		l.add(n, s)
	}
}

// AddNamed adds what a simulated agent says of its events.
func (l Ledger) AddNamed(list []simulate.Named) {
	for _, n := range list {
		l.add(Name{n.Category, n.Name}, Sums{n.Count, n.Sum})
	}
}

// AddEvent adds an event that stands in a ring.
func (l Ledger) AddEvent(e *ringbuf.Event) {
	category := strings.ToLower(e.Category.String())
	if !e.Named && e.Type == ringbuf.TypeEventsDropped {
		category = "telemetry"
	}
	l.add(Name{category, e.EventName()}, Sums{1, e.Value})
}

func (l Ledger) add(n Name, s Sums) {
	old := l[n]
	l[n] = Sums{old.Count + s.Count, old.Sum + s.Sum}
}

// Events is the number of all events.
func (l Ledger) Events() (n uint64) {
	for _, s := range l {
		n += s.Count
	}
	return n
}
