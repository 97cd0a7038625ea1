// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// look is a request for copies of the totals of all agents. Unlike a collection, it has no
// effect on what is exported: it waits for no save, includes no stream that has ended, and
// starts no interval.
type look struct {
	done func([]Snapshot)

	began     bool
	after     string // ID of the last agent that was copied
	snapshots []Snapshot
}

func (m *look) apply(o *owner, _ time.Time) { o.looks = append(o.looks, m) }

// lookDue copies the totals of the next agents.
func (o *owner) lookDue(now time.Time) {
	if len(o.looks) == 0 {
		return
	}
	m := o.looks[0]
	if !m.began {
		m.began = true
		o.drainAll(now)
		m.snapshots = make([]Snapshot, 0, len(o.order))
	}
	list, last := o.following(&m.after)
	for _, a := range list {
		if o.stale(a, now) {
			continue
		}
		s := Snapshot{Agent: a.Agent, Layout: a.layout, Stream: a.stream, Start: a.start, Up: a.exit.up}
		if a.stores != nil {
			s.Totals = o.imports.convert(a.stores.bounds, o.sumStores(a.stores), &a.stores.base)
			s.Processes = []Process{a.stores.newest.Process}
		} else {
			s.Totals = a.tally.Look()
		}
		m.snapshots = append(m.snapshots, s)
	}
	if last {
		o.looks = o.looks[1:]
		o.do(lookEffect{m})
	}
}

type lookEffect struct{ *look }

func (e lookEffect) run(env) { e.done(e.snapshots) }

// Watch is a [tally.Watch] for all agents. Draining waits for its functions.
type Watch struct {
	Transfer func(*Agent, *tally.Transfer) // valid until it returns; may be nil
	Error    func(*Agent, tally.Error)     // may be nil
}

// watching begins or ends a watch of all agents.
type watching struct {
	watch *Watch
	end   bool
}

func (m watching) apply(o *owner, _ time.Time) {
	if m.end {
		o.watches = slices.DeleteFunc(o.watches, func(w *Watch) bool { return w == m.watch })
	} else {
		o.watches = append(o.watches, m.watch)
	}
	for _, a := range o.agents {
		o.watch(a)
	}
}

// watch makes the agent's totals pass transfers and errors to all watches.
func (o *owner) watch(a *agent) {
	if a.tally == nil { // of stores, which have no events
		return
	}
	list := make([]tally.Watch, len(o.watches))
	for i, w := range o.watches {
		if w.Transfer != nil {
			list[i].Transfer = func(t *tally.Transfer) { w.Transfer(&a.Agent, t) }
		}
		if w.Error != nil {
			list[i].Error = func(e tally.Error) { w.Error(&a.Agent, e) }
		}
	}
	a.tally.Watch(list...)
}
