// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func (m Attended) apply(o *owner, now time.Time) {
	a := o.agents[m.ID]
	if a != nil && a.opening != nil && a.opening.Reader == m.Reader && m.Open {
		a.opening.gone = false
	}
	if a == nil || a.reader != m.Reader {
		return // about an earlier ring
	}
	switch {
	case !m.Known:
		a.exit.unknown()
	case m.Open:
		a.exit.running()
	default:
		a.exit.exited()
		a.due = now // the agent's last events are in the ring now
	}
}

// stale reports whether an agent must not be reported, because it has been silent and the
// kernel can't tell whether it still runs.
func (o *owner) stale(a *agent, now time.Time) bool {
	return a.exit.up == UpUnknown && o.silent(a, now)
}

// silent reports whether an agent has written nothing for StaleAfter and its last events
// were delivered. A backend may be down for longer than StaleAfter.
func (o *owner) silent(a *agent, now time.Time) bool {
	return now.Sub(a.lastEvent) >= o.cfg.StaleAfter && !a.delivered.Before(a.lastEvent)
}

// retireStale closes rings that no process needs, and retires agents that have exited.
// An idle agent keeps its ring, because it may fill a closed ring before the ring is
// opened again.
func (o *owner) retireStale(now time.Time) {
	if now.Before(o.retireAt) {
		return
	}
	o.retireAt = now.Add(time.Second)
	for _, a := range slices.Clone(o.order) {
		o.closeGone(a, now)
		exited := a.exit.complete || a.reader == nil
		if !exited || !o.silent(a, now) {
			continue
		}
		if a.held() > 0 {
			// Without a checkpoint, these events would be counted again later. But if
			// the store has been failing, commit and retire the agent anyway.
			if !o.failing || a.commit() != nil {
				continue
			}
		}
		o.retire(a)
	}
}

// closeGone closes a ring that no process needs; see [Gone]. It may be impossible to open
// the ring again, so all its events must be counted and stored first.
func (o *owner) closeGone(a *agent, now time.Time) {
	if o.ending || a.reader == nil || a.exit.waits(now) {
		return
	}
	o.drain(a, now)
	if a.reader == nil || !a.exit.complete || a.held() > 0 || a.exit.waits(now) {
		return
	}
	if m, err := o.mark(a, now); err == nil && o.cfg.Mode == ringbuf.Consume {
		a.resume = &m // the agent's next run may use the same file
	}
	o.do(closeEffect{a.source, a.detach()})
	a.exit.exited()
}

func (o *owner) retire(a *agent) {
	o.drop(a)
	o.do(retireEffect{a.source, a.Agent, a.detach()})
	if o.saves {
		o.do(forgetEffect{checkpoint.Key(a.ID)})
	}
	o.report(a, info(notice.RingRetired, fmt.Sprintf(
		"agent exited and wrote nothing for %v, so it is no longer reported; its ring file is kept", o.cfg.StaleAfter)))
}

// stop closes all rings. Collections that aren't answered yet stay unanswered.
type stop struct{}

func (stop) apply(o *owner, _ time.Time) {
	o.stopped = true
	for _, id := range slices.Sorted(maps.Keys(o.agents)) {
		o.release(o.agents[id])
	}
}

// release closes the agent's rings.
func (o *owner) release(a *agent) {
	if a.opening != nil {
		o.do(closeEffect{a.source, a.opening.Reader})
		a.opening = nil
	}
	if a.reader != nil {
		o.do(closeEffect{a.source, a.detach()})
	}
}
