// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ledger adds up events by name, and converts them to metrics with an independent
// implementation of the catalog.
package ledger

import (
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Name is the category and the name of an event.
type Name struct {
	Category string // as in nixl.event.category
	Name     string // as in nixl.event.name
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

// Named is an entry of a ledger.
type Named struct {
	Name
	Sums
}

// AddNamed adds entries.
func (l Ledger) AddNamed(list []Named) {
	for _, n := range list {
		l.add(n.Name, n.Sums)
	}
}

// Of returns the entries of a simulated agent's journal.
func Of(journal *oracle.Oracle) (list []Named) {
	journal.ByName(func(category, name string, count, sum uint64) {
		list = append(list, Named{Name{category, name}, Sums{count, sum}})
	})
	return list
}

// AddEvent adds an event of a ring.
func (l Ledger) AddEvent(e *ringbuf.Event) {
	category := strings.ToLower(e.Category.String())
	if !e.Named && e.Type == ringbuf.TypeEventsDropped {
		category = "telemetry"
	}
	l.add(Name{category, oracle.Name(category, e.EventName())}, Sums{1, e.Value})
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
