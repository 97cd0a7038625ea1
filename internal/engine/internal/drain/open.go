// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// load gives the owner the stored checkpoints, or the reason why they can't be loaded. It must
// come before the first step.
func (o *owner) load(values [][]byte, err error, now time.Time) {
	const unusable = "checkpoints can't be used, so the totals of their agents start from zero, and events may be counted twice; check the storage extension"
	pages, errs := checkpoint.NewPages(values)
	if err != nil {
		errs = append(errs, fmt.Errorf("load all checkpoints: %w", err))
	}
	for _, err := range errs {
		o.env.report(warn(notice.CheckpointUnusable, unusable, err))
	}
	o.pages = pages
	for _, id := range pages.IDs() {
		o.restore(id, now)
	}
}

// restore continues the totals of an agent, or of a predecessor, from a checkpoint. An agent has no ring until
// that is offered. Because it may never be, the totals are exported once more.
func (o *owner) restore(id string, now time.Time) {
	name, _, ended := strings.Cut(id, checkpoint.Separator)
	e, err := o.pages.Get(id)
	totals := tally.NewAgent(o.cfg.Shape)
	if err == nil {
		if restored, invalid := o.cfg.Shape.Restore(e.Totals); invalid == nil {
			totals = restored
		} else if err = invalid; !ended {
			e.Attributes = nil // there is nothing to export
		}
	}
	if err != nil {
		err = fmt.Errorf("agent %s: %w", name, err)
	}
	switch {
	case err != nil && ended:
		o.env.report(warn(notice.StreamLost, "the last totals of an agent can't be used, so events are missing from the metrics", err))
	case err != nil:
		o.env.report(warn(notice.CheckpointUnusable, "checkpoint can't be used, so the agent's totals start from zero", err))
	}
	if e == nil || ended && err != nil {
		o.pages.Remove(id)
		return
	}
	a := &agent{
		Agent: Agent{ID: name, Name: e.Name}, page: checkpoint.PageOf(id), tally: totals, layout: e.Mark.Layout,
		start: time.Unix(0, e.Mark.Start), stream: e.AttributeSet(), dirty: err != nil,
	}
	if ended {
		a.ended = time.Unix(0, e.Ended)
		o.enter(a)
		return
	}
	// The position is valid in any case: the process before has reported the events before it.
	a.resume = &e.Mark
	o.absent++
	o.enter(a)
	if o.add(a, now); o.cfg.Stream != nil && a.stream.Len() == 0 {
		a.Attribution, a.delivered = Sought, a.news
	}
	o.own(a, files.ID{Dev: e.Mark.Dev, Ino: e.Mark.Ino})
	o.followClock(a, now)
}

// keep makes a ring that of its agent.
func (o *owner) keep(m *Offer, now time.Time) {
	a := o.agents[m.Agent.ID]
	switch {
	case a == nil:
		a = &agent{Agent: m.Agent, page: checkpoint.PageOf(m.Agent.ID), tally: tally.NewAgent(o.cfg.Shape), start: now}
		o.add(a, now)
		o.rings[a.Holder]++
		a.tally.Opened(m.Reader.Committed() == 0)
		a.dirty = o.saves // the start time of the totals
	case a.absent():
		o.appear(a, m.From)
	case a.reader != nil:
		o.replaced(a)
	case m.Agent.Path != a.Path:
		o.countRestart(a, notice.RingReplaced, "agent restarted with another ring")
	}
	a.source = m.From
	o.own(a, m.File)
	o.attach(a, m.Agent, m.Reader, now)
}

// appear notes that the agent of a checkpoint runs, unless it isn't absent.
func (o *owner) appear(a *agent, from Source) {
	if a.absent() {
		o.absent--
		o.rings[a.Holder]++
		a.source = from
	}
}

// add adds an agent.
func (o *owner) add(a *agent, now time.Time) {
	a.heard(now)
	a.count = func(b ringbuf.Batch) { o.count(a, b) }
	o.watch(a)
	o.agents[a.ID] = a
}

// replaced closes an agent's ring, whose events were all read, because another file has replaced it.
func (o *owner) replaced(a *agent) {
	// Commit, because the file may still exist under another name and be opened again.
	if a.commit() == nil {
		a.reader.Release()
	}
	a.source.Close(a.detach())
	o.countRestart(a, notice.RingReplaced, "another file has replaced the ring; its agent restarted")
}

// attach gives an agent a ring, and moves the ring to the position of the totals if it is
// known.
func (o *owner) attach(a *agent, as Agent, r *ringbuf.Reader, now time.Time) {
	complete := a.exit.final()
	o.describe(a, as, r, now)
	a.attach(r, now)
	o.enter(a)
	o.report(a, info(notice.RingOpened, fmt.Sprintf("ring opened (layout %v, %d slots)", a.layout, r.Capacity())))
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
	case checkpoint.Resumed:
		a.dirty = a.dirty || stored.From == 0 && stored.To != 0 // as after a commit
	case checkpoint.Restarted:
		text := "agent restarted since the last checkpoint"
		if complete { // the ring was closed because its agent had exited
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

func (m Gone) apply(o *owner, now time.Time) {
	if a := o.agents[m.ID]; a != nil && a.reader == m.Reader && a.reader != nil {
		a.exit.unneeded(now)
		a.due = now // the agent's last events are in the ring now
	}
}
