// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ledger adds up events by name, and converts them to metrics with an independent
// implementation of the catalog.
package ledger

import (
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Name is the category and the name of an event.
type Name struct {
	Category string // as in nixl.event.category
	Name     string // name, or name of the type, in the ring
}

// Sums are the number and the sum of the events with one name.
type Sums struct{ Count, Sum uint64 }

// Ledger contains sums of events by name.
type Ledger map[Name]Sums

// Add adds all sums of another ledger.
func (l Ledger) Add(o Ledger) {
	for n, s := range o {
		l.add(n, s)
	}
}

// AddNamed adds totals of a simulated agent.
func (l Ledger) AddNamed(list []simulate.Named) {
	for _, n := range list {
		l.add(Name{n.Category, n.Name}, Sums{n.Count, n.Sum})
	}
}

// AddEvent adds an event of a ring.
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

// Events returns the number of all events.
func (l Ledger) Events() (n uint64) {
	for _, s := range l {
		n += s.Count
	}
	return n
}
