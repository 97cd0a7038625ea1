// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
)

func (m Attended) apply(o *owner, now time.Time) {
	if m.Pending != nil {
		m.Pending.Store(false)
	}
	a := o.agents[m.ID]
	if a == nil || a.reader != m.Reader {
		return // about an earlier ring
	}
	if m.Up != UpUnknown || a.exit.gone.IsZero() { // otherwise, discovery knows better
		a.exit.set(m.Up)
	}
	if m.Up == UpNo {
		a.due = now // the agent's last events are in the ring now
	}
}

// stale reports whether an agent must not be reported, because the kernel can't tell whether it still runs, and
// it has been silent. An absent agent is reported once.
func (o *owner) stale(a *agent, now time.Time) bool {
	return a.ended.IsZero() && a.exit.up == UpUnknown && (o.silent(a, now) || a.absent() && a.delivered == a.news)
}

// silent reports whether an agent has written nothing for StaleAfter and its last events
// were delivered. A backend may be down for longer than StaleAfter.
func (o *owner) silent(a *agent, now time.Time) bool {
	return now.Sub(a.lastEvent) >= o.cfg.StaleAfter && a.delivered == a.news
}

// retireStale closes rings that no process needs, and retires agents that have exited.
// An idle agent keeps its ring, because it may fill a closed ring before the ring is
// opened again.
func (o *owner) retireStale(now time.Time) {
	if now.Before(o.retireAt) {
		return
	}
	o.retireAt = now.Add(idleStep)
	for _, a := range slices.Clone(o.order) {
		if !a.ended.IsZero() {
			continue
		}
		o.closeGone(a, now)
		if a.reader != nil && !a.exit.final() || !o.silent(a, now) {
			continue
		}
		if a.reader != nil && !a.reader.Idle() { // its next process has written, and the ring waits for others of its container
			continue
		}
		if a.absent() {
			o.drop(a)
			continue
		}
		if a.held() > 0 {
			// Without a checkpoint, these events would be counted again later. But if
			// the store has been failing, commit and retire the agent anyway.
			if !o.failing || a.commit() != nil {
				continue
			}
		}
		o.retire(a, fmt.Sprintf("agent exited and wrote nothing for %v, so it is no longer reported", o.cfg.StaleAfter))
	}
}

// closeGone closes a ring that no process needs; see [Gone]. It may be impossible to open
// the ring again, so all its events must be counted and stored first.
func (o *owner) closeGone(a *agent, now time.Time) {
	since := a.exit.gone
	if o.ending || a.reader == nil || since.IsZero() || now.Sub(since) < goneWait {
		return
	}
	o.drain(a, now)
	if a.reader == nil || a.exit.gone.IsZero() || a.held() > 0 || !a.exit.final() && now.Sub(since) < unreadWait {
		return
	}
	if m, err := a.mark(); err == nil && !o.cfg.Observe {
		a.resume = &m // the agent's next run may use the same file
	}
	a.source.Close(a.detach())
	a.exit.up = UpNo
}

// retire removes an agent, and reports why.
func (o *owner) retire(a *agent, text string) {
	o.forget(a)
	o.report(a, info(notice.RingRetired, text+"; its ring file is kept"))
}

// forget removes an agent and its checkpoint.
func (o *owner) forget(a *agent) {
	o.drop(a)
	if a.reader != nil {
		a.reader.Release()
	}
	a.source.Retire(a.Agent, a.detach())
}

// stop closes all rings. With a store, it first reads and stores what they have, until the deadline: what isn't stored
// stays in the rings. Collections that aren't answered by then stay unanswered.
type stop struct{ deadline time.Time }

func (m stop) apply(o *owner, now time.Time) {
	switch {
	case !o.saves:
		o.closeAll()
	case o.stopBy.IsZero():
		o.drainAll(now)
		o.ending, o.stopBy = true, m.deadline
	}
}

// stopDue closes all rings after a [stop], once everything is stored.
func (o *owner) stopDue(now time.Time) {
	late := o.failing || !now.Before(o.stopBy) || o.batch != nil && o.batch.reported
	if !o.stopBy.IsZero() && (late || o.batch == nil && !slices.ContainsFunc(o.order, (*agent).unsaved)) {
		o.closeAll()
	}
}

func (o *owner) closeAll() {
	o.stopped = true
	for _, a := range o.order {
		if a.reader == nil {
			continue
		}
		if !o.saves {
			a.reader.Release()
		}
		a.source.Close(a.detach())
	}
}
