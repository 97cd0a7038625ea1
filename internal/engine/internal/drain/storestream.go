// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// continueStores ends the streams of agents with stores that are exported under other
// attributes from now on, because they have a newer process; see [owner.continueStream].
func (o *owner) continueStores(now time.Time) {
	if o.cfg.Stream == nil {
		return
	}
	for _, a := range o.order {
		if a.stores != nil && a.stores.newest != a.stores.streamed {
			o.continueProcesses(a, now)
		}
	}
}

func (o *owner) continueProcesses(a *agent, now time.Time) {
	s := a.stores
	newer := func(p *processStore) bool { return !p.known && byAge(p, s.newest) > 0 }
	if a.stream.Len() > 0 && slices.ContainsFunc(s.processes, newer) {
		return // the checkpoint names it, and its store wasn't found yet
	}
	attributes := o.cfg.Stream(&Snapshot{Agent: a.Agent, Processes: []Process{s.newest.Process}})
	if a.stream.Len() > 0 && !a.stream.Equals(&attributes) {
		o.endProcesses(a, now)
	}
	s.changed = s.changed || !a.stream.Equals(&attributes) // store the attributes before they are exported
	a.stream, a.name, s.streamed, s.resumed = attributes, a.Name, s.newest, false
}

// endProcesses ends the stream of an agent with stores. The processes that are newer than
// the last one of the stream belong to the next one. What the others count from now on also
// does.
func (o *owner) endProcesses(a *agent, now time.Time) {
	s := a.stores
	last := cmp.Or(s.streamed, s.newest)
	sum := s.base
	s.base, s.hasBase = tally.Values{}, false
	for _, p := range s.processes {
		if s.streamed == nil || byAge(p, s.streamed) > 0 {
			continue
		}
		s.add(&sum, p)
		p.before = new(tally.Values)
		p.before.Set(p.values)
	}
	ended := &tally.Processes{Bounds: s.bounds, Base: sum, Running: []tally.ProcessValues{s.stored(last)}}
	o.addEnded(a, tally.Stream{Stored: tally.Stored{Processes: ended}}, now)
}
