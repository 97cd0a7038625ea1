// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// loadWait is the maximum time that a ring waits for its checkpoint. Without the
	// checkpoint, it is unknown which events the stored totals include.
	loadWait = 5 * time.Second
	// loadRetry is the time until a failed load is repeated.
	loadRetry = 200 * time.Millisecond
	// brokenWait is the time until a ring that can't be read is opened again.
	brokenWait = time.Second
)

func (m Opened) apply(o *owner, now time.Time) {
	if o.stopped {
		o.do(closeEffect{m.From, m.Reader})
		return
	}
	a := o.agents[m.Agent.ID]
	switch {
	case a == nil:
		a = o.newAgent(m.Agent, m.From, now)
		o.agents[a.ID] = a
		if o.saves {
			a.opening = &m
			o.openLater(a, now.Add(loadWait))
			o.do(loadEffect{a.ID, checkpoint.Key(a.ID)})
			return
		}
		a.tally.Opened(m.Reader.Committed() == 0)
	case m.Agent.Path != a.Path && a.busy():
		o.do(refuseEffect{m.From, m.Agent, m.Reader})
		return
	case a.opening != nil: // another file has replaced the ring, whose events can't be counted yet
		last := a.opening
		for last.next != nil {
			last = last.next
		}
		last.next = &m
		return
	case a.reader != nil:
		o.replaced(a, now)
	case m.Agent.Path != a.Path:
		o.countRestart(a, notice.RingReplaced, "agent restarted with another ring")
	}
	a.Agent, a.source = m.Agent, m.From
	o.attach(a, m.Reader, now)
}

func (o *owner) newAgent(id Agent, from Source, now time.Time) *agent {
	a := &agent{Agent: id, source: from, tally: tally.NewAgent(o.cfg.Shape), start: now}
	a.heard(now)
	a.count = func(b ringbuf.Batch) { o.count(a, b) }
	o.limit(a)
	o.watch(a)
	return a
}

// replaced closes an agent's ring after another file has replaced it.
func (o *owner) replaced(a *agent, now time.Time) {
	o.drainOut(a, now)
	if a.reader == nil {
		return
	}
	o.closed(a, errReplaced)
	// Commit, because the file may still exist under another name and be opened again.
	if a.commit() == nil {
		a.reader.Release()
	}
	o.do(closeEffect{a.source, a.detach()})
	o.countRestart(a, notice.RingReplaced, "another file has replaced the ring; its agent restarted")
}

// loaded is the answer to a loadEffect.
type loaded struct {
	id    string
	value []byte // nil if nothing is stored
	err   error
}

func (m loaded) apply(o *owner, now time.Time) {
	a := o.agents[m.id]
	if o.stopped || a == nil || a.opening == nil {
		return
	}
	if m.err != nil && now.Before(a.openBy) {
		a.loadErr, a.loadAt = m.err, now.Add(loadRetry)
		o.openSooner(a.loadAt)
		return
	}
	first := a.opening
	mark, err := o.restore(a, m)
	if err != nil {
		o.report(a, warn(notice.CheckpointUnusable, "checkpoint can't be used, so the agent's totals start from zero", err))
	}
	if mark == nil {
		a.tally.Opened(first.Reader.Committed() == 0)
		a.dirty = true // store the start time of the totals
	} else {
		o.followClock(a, now)
		a.resume, mark.Start = mark, a.start.UnixNano()
	}
	o.attach(a, first.Reader, now)
	first.applyLater(o, now)
	for next := first.next; next != nil; next = next.next {
		next.apply(o, now)
		next.applyLater(o, now)
	}
}

// applyLater applies what was reported about a ring while it waited.
func (m *Opened) applyLater(o *owner, now time.Time) {
	if m.attended != nil {
		m.attended.apply(o, now)
	}
	if m.gone {
		Gone{ID: m.Agent.ID, Reader: m.Reader}.apply(o, now)
	}
}

// waiting returns the ring of a reader if it waits for the agent's checkpoint, or else nil.
func (a *agent) waiting(r *ringbuf.Reader) *Opened {
	m := a.opening
	for m != nil && m.Reader != r {
		m = m.next
	}
	return m
}

// restore restores the agent's totals from its checkpoint, if there is one, and returns their
// position.
func (o *owner) restore(a *agent, m loaded) (*checkpoint.Mark, error) {
	if m.err != nil || m.value == nil {
		return nil, m.err
	}
	mark, stored, err := checkpoint.Parse(m.value)
	if err != nil {
		return nil, err
	}
	state, err := o.cfg.Shape.RestoreState(stored)
	if err != nil {
		// The position is still valid: the previous process has reported the events
		// before it.
		return &mark, err
	}
	a.tally.Release()
	a.restore(state, mark)
	o.limit(a)
	o.watch(a)
	return &mark, nil
}

// openDue stops waiting for late checkpoints, and opens broken rings again.
func (o *owner) openDue(now time.Time) {
	if o.openAt.IsZero() || now.Before(o.openAt) {
		return
	}
	o.openAt = time.Time{}
	for _, id := range slices.Sorted(maps.Keys(o.agents)) {
		a := o.agents[id]
		switch {
		case a.openBy.IsZero():
		case now.Before(a.openBy):
			o.openSooner(a.openBy)
			o.reload(a, now)
		case a.opening != nil:
			o.report(a, warn(notice.CheckpointUnusable, fmt.Sprintf("checkpoint wasn't read within %v, so the agent's totals start from zero "+
				"and events may be counted twice; check the storage extension", loadWait), a.loadErr))
			loaded{id: a.ID}.apply(o, now)
		default:
			a.openBy = time.Time{}
			o.do(reopenEffect{a.source, a.Agent, nil})
		}
	}
}

// openLater sets the time at which openDue handles an agent.
func (o *owner) openLater(a *agent, at time.Time) {
	a.openBy = at
	o.openSooner(at)
}

// openSooner makes openDue run at the given time at the latest.
func (o *owner) openSooner(at time.Time) {
	if o.openAt.IsZero() || at.Before(o.openAt) {
		o.openAt = at
	}
}

// reload repeats a failed load, if that is due.
func (o *owner) reload(a *agent, now time.Time) {
	switch {
	case a.loadAt.IsZero():
	case now.Before(a.loadAt):
		o.openSooner(a.loadAt)
	default:
		a.loadAt = time.Time{}
		o.do(loadEffect{a.ID, checkpoint.Key(a.ID)})
	}
}

// attach gives an agent a ring, and moves the ring to the position of the totals if it is
// known.
func (o *owner) attach(a *agent, r *ringbuf.Reader, now time.Time) {
	lossless := a.exit.lossless()
	if !a.Unattributed {
		o.continueStream(a, r, now)
	}
	a.attach(r, o.cfg.RunInterval, now)
	o.enter(a)
	o.report(a, info(notice.RingOpened, fmt.Sprintf("ring opened (layout %v, %d slots)", a.layout, r.Capacity())))
	o.opened(a, r)
	if a.resume == nil {
		return
	}
	outcome, err := a.resume.Resume(r)
	if err != nil {
		o.interrupted(a, now, err) // if this closes the ring, the mark is still needed
		if a.reader != nil {
			a.resume = nil
		}
		return
	}
	stored := a.resume
	a.resume = nil
	switch outcome {
	case checkpoint.Resumed, checkpoint.Finished:
		a.dirty = a.dirty || stored.From == 0 && stored.To != 0 // as after a commit
	case checkpoint.Restarted:
		text := "agent restarted since the last checkpoint"
		if lossless { // the ring was closed because its agent had exited
			text = "agent restarted"
		}
		o.countRestart(a, notice.RingRestart, text)
	case checkpoint.ReadByOther:
		a.tally.ForeignRead()
		a.dirty = true
		o.report(a, warn(notice.RingForeign, "events were consumed since the last checkpoint and may be missing from the totals; "+
			"stop other consumers, and look for earlier warnings that events were committed without a checkpoint", nil))
	}
}

// opened tells the handler that the agent's ring was opened.
func (o *owner) opened(a *agent, r *ringbuf.Reader) {
	a.announced = true
	if opened := o.cfg.Handler.Opened; opened != nil {
		opened(a.Agent, r.Layout(), r.Capacity())
	}
}

// errReplaced is why a ring is closed after another file has replaced it.
var errReplaced = errors.New("another file has replaced the ring")

// errExited is why a ring is closed whose agent has exited.
var errExited = errors.New("agent exited")

// closed tells the handler that the agent's ring was closed, unless it knows.
func (o *owner) closed(a *agent, err error) {
	if closed := o.cfg.Handler.Closed; closed != nil && a.announced {
		closed(a.Agent, err)
	}
	a.announced = false
}

func (m Attributed) apply(o *owner, now time.Time) {
	a := o.agents[m.Agent.ID]
	if a == nil {
		return
	}
	if w := a.waiting(m.Reader); w != nil {
		w.Agent = m.Agent
		if w == a.opening {
			a.Agent = m.Agent
		}
	}
	if a.reader == m.Reader && a.reader != nil {
		a.Agent = m.Agent
		o.continueStream(a, a.reader, now)
	}
}

func (m Removed) apply(o *owner, _ time.Time) {
	if a := o.agents[m.ID]; a != nil && a.reader != nil {
		o.report(a, info(notice.RingRemoved, "ring file was removed or renamed; events that its agent still writes are counted under this name"))
	}
}

func (m Gone) apply(o *owner, now time.Time) {
	a := o.agents[m.ID]
	switch {
	case a == nil:
	case a.opening != nil:
		if w := a.waiting(m.Reader); w != nil {
			w.gone = true
		}
	case a.reader == m.Reader && a.reader != nil:
		a.exit.unneeded(now)
		a.due = now // the agent's last events are in the ring now
	}
}

func (m Touched) apply(o *owner, now time.Time) {
	if a := o.agents[m.ID]; a != nil {
		a.due = now
	}
}
