// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// agent is what its owner knows about one agent. It outlives the agent's
// process and its ring: an agent that restarts keeps its totals.
type agent struct {
	Agent
	source Source

	reader  *ringbuf.Reader // nil while the agent has no open ring
	opening *Opened         // a ring that waits for the agent's checkpoint
	openBy  time.Time       // when it stops waiting; or, without opening, when a broken ring is opened again
	// resume is where the totals stand in a ring that has to be brought there when
	// it is opened again, nil if there is none.
	resume *checkpoint.Mark

	tally  *tally.Agent
	layout ringbuf.Layout
	start  time.Time // of the totals
	count  func(ringbuf.Batch)
	fresh  int // events that the current drain has counted

	pace pace
	wait time.Duration // between two drains, as pace asked for last
	due  time.Time     // when the ring is drained next

	// generation changes whenever positions are committed or a ring is given up,
	// so that a save which was begun before no longer applies.
	generation uint64
	heldSince  time.Time // when the oldest uncommitted event was read; zero if there is none
	dirty      bool      // the totals aren't stored, and the ring doesn't hold what is missing

	up       Up
	gone     time.Time // since when no process needs the ring; zero if one does
	finished bool      // the agent has exited, and its ring was drained since

	lastEvent time.Time // when events were last found, or the ring was opened
	shown     shown
	delivered time.Time // lastEvent as of the newest collection that was delivered
}

// shown is what the newest collection has seen of an agent.
type shown struct {
	collection uint64
	lastEvent  time.Time
}

func (o *owner) newAgent(id Agent, from Source, now time.Time) *agent {
	a := &agent{Agent: id, source: from, tally: tally.NewAgent(o.cfg.Shape), start: now, lastEvent: now}
	tap := o.cfg.Tap
	a.count = func(b ringbuf.Batch) {
		a.fresh += b.Len()
		a.tally.Add(b)
		if tap != nil {
			tap(a.Agent, b)
		}
	}
	o.watch(a)
	return a
}

// watch has the agent's totals show what is watched.
func (o *owner) watch(a *agent) {
	w := o.cfg.Watch
	if w == nil {
		return
	}
	one := tally.Watch{Slow: w.Slow, Transfer: func(t tally.Transfer) { w.Transfer(a.Agent, t) }}
	if w.Error != nil {
		one.Error = func(e tally.Error) { w.Error(a.Agent, e) }
	}
	a.tally.Watch(one)
}

// held returns the number of events that were read and still stand in the ring.
func (a *agent) held() int {
	if a.reader == nil {
		return 0
	}
	return a.reader.Uncommitted()
}

// attach gives the agent a ring.
func (a *agent) attach(r *ringbuf.Reader, configured time.Duration, now time.Time) {
	a.generation++
	a.reader, a.opening, a.openBy = r, nil, time.Time{}
	a.layout = r.Layout()
	a.finished, a.gone, a.up = false, time.Time{}, UpUnknown
	a.heldSince, a.lastEvent, a.due = time.Time{}, now, now
	a.pace = newPace(configured)
	a.tally.Found(0, r.Capacity())
}

// busy reports whether the agent can't be given another ring yet: it may write to the
// one that it has, or that one waits for the agent's checkpoint.
func (a *agent) busy() bool {
	return a.opening != nil || a.reader != nil && a.gone.IsZero() && a.up == UpYes
}

// detach takes the ring from the agent and returns it, to be closed. What was
// counted from it and not committed can't be read again.
func (a *agent) detach() *ringbuf.Reader {
	r := a.reader
	a.generation++
	a.reader, a.heldSince, a.dirty = nil, time.Time{}, true
	a.up = UpUnknown
	return r
}

// commit gives the slots of all events that were read back to the agent.
func (a *agent) commit() error {
	a.generation++
	return a.reader.Commit()
}

// hold notes since when events have stood in the ring uncommitted.
func (a *agent) hold(now time.Time) {
	switch {
	case a.held() == 0:
		a.heldSince = time.Time{}
	case a.heldSince.IsZero():
		a.heldSince = now
	}
}
