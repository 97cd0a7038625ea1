// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// A ring is drained as soon as it is opened. Its agent's ID may depend on the process that has it mapped, and
// is provisional until that is found. The checkpoint of a ring's file also has an ID, under which its totals
// and its position continue.

func (m Attributed) apply(o *owner, now time.Time) {
	a := o.agents[m.Was]
	if a == nil || a.reader != m.Reader || a.reader == nil {
		return
	}
	if m.Agent.ID == a.ID {
		o.describe(a, m.Agent, a.reader, now)
		return
	}
	o.identify(a, m.Agent, now)
}

// identify gives an agent with a ring another ID. It continues the totals of an earlier agent with this ID. If
// that is still running, or has more events in its ring, the ring is opened again, and refused.
func (o *owner) identify(a *agent, as Agent, now time.Time) {
	attributes := o.attributes(as, a.layout)
	if a.stream.Len() > 0 && !a.stream.Equals(&attributes) {
		o.succeed(a, now, now)
	}
	o.drop(a)
	before := o.agents[as.ID]
	switch {
	case before == nil:
	case before.Path != as.Path && before.busy(), before.reader != nil && !o.drainOut(before, now):
		o.part(a, as, now)
		return
	case before.reader != nil:
		o.replaced(before)
	default:
		o.countRestart(before, notice.RingReplaced, "agent restarted with another ring")
	}
	if before != nil {
		o.appear(before, a.source)
		o.describe(before, as, a.reader, now)
		before.tally.Join(a.tally)
		a.tally, a.start, a.latest = before.tally, before.start, before.latest
		o.watch(a)
		o.drop(before)
	}
	file := a.file
	a.Agent, a.page, a.stream, a.dirty = as, checkpoint.PageOf(as.ID), attributes, true
	o.agents[a.ID] = a
	o.rings[a.Holder]++
	o.own(a, file)
	o.enter(a)
	for _, b := range o.order {
		if b.ID == a.ID {
			_, _ = o.write(b) // after an error, the next save tries it again
		}
	}
}

// part exports the totals of an agent once more, under its own ID, and opens its ring again.
func (o *owner) part(a *agent, as Agent, now time.Time) {
	if a.held() > 0 {
		_ = a.commit() // else the ring has changed, and its events are gone
	}
	r := a.detach()
	if a.stream.Len() == 0 {
		as.ID = a.ID
		a.stream = o.attributes(as, a.layout)
	}
	a.ended, a.Attribution = now, Known
	o.enter(a)
	a.source.Reopen(a.Agent, r)
}
