// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Events of older layouts are translated to layout V3, in runs, and then counted. An
// event that has no equivalent there ends a run and is counted by itself.

// run is long enough to make the fixed cost per run negligible, and short enough to be
// cleared quickly on the stack.
type run [128]ringbuf.TypedEvent

// categorized counts events that have a type and a category. If the category doesn't
// match the type, neither can be trusted.
func (a *Agent) categorized(events []ringbuf.CategorizedEvent) {
	var r run
	for len(events) > 0 {
		n := r.categorized(events)
		a.typed(r[:n], ringbuf.V3)
		events = events[n:]
		if n < len(r) && len(events) > 0 {
			e := &events[0]
			a.unknown(e.Category, e.Type, e.Value, ringbuf.V2)
			events = events[1:]
		}
	}
}

func (r *run) categorized(events []ringbuf.CategorizedEvent) (n int) {
	events = events[:min(len(events), len(r))]
	for n = range events {
		e := &events[n]
		t := e.Type
		if !ringbuf.V2.Knows(t) || t.Category() != e.Category {
			return n
		}
		r[n] = ringbuf.TypedEvent{Type: t, Value: e.Value}
	}
	return len(events)
}

// timed counts events that have a category, a name and a time.
func (a *Agent) timed(events []ringbuf.TimedEvent) {
	var r run
	s := a.spell()
	for len(events) > 0 {
		n := r.timed(events, s)
		a.watch.times(events)
		a.typed(r[:n], ringbuf.V3)
		events = events[n:]
		if n < len(r) && len(events) > 0 {
			e := &events[0]
			a.watch.times(events)
			a.work += singleWork
			a.spelled(a.find(e.Category, &e.Name), e.Value)
			events = events[1:]
		}
	}
}

func (r *run) timed(events []ringbuf.TimedEvent, s *spellings) (n int) {
	events = events[:min(len(events), len(r))]
	for n = range events {
		e := &events[n]
		words, category := wordsOf(&e.Name), mark(e.Category)
		at := &s[words.hash(category)]
		if at.mark != category || at.words != words || at.series != noSeries {
			return n
		}
		r[n] = ringbuf.TypedEvent{Type: at.kind, Value: e.Value}
	}
	return len(events)
}

func (a *Agent) spell() *spellings {
	if a.spellings == nil {
		a.spellings = new(spellings)
	}
	return a.spellings
}

// spelled counts an event that has a category and a name.
func (a *Agent) spelled(s *spelling, v uint64) {
	if s.series == noSeries {
		a.known(s.kind, v)
		return
	}
	a.series[s.series].record(v)
	if s.failed {
		a.otherError(v)
	}
}
