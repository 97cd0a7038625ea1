// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A backend identifies totals by the attributes under which they are exported, so totals
// that continue under other attributes would count the past twice. When the attributes of
// an agent change, its stream therefore ends: the next export contains its totals a last
// time, and the totals of the next stream start at zero, with a new start time.

// maxEnded limits the streams of an agent that have ended but weren't exported yet, and
// maxEndedHeld those of all agents of a container.
const maxEnded, maxEndedHeld = 16, 256

// continueStream ends the agent's stream if the agent is exported under other attributes
// from now on. All events of the earlier rings must have been counted; those in r belong
// to the next stream.
func (o *owner) continueStream(a *agent, r *ringbuf.Reader, now time.Time) {
	var attributes attribute.Set
	if o.cfg.Stream != nil {
		attributes = o.cfg.Stream(&Snapshot{Agent: a.Agent, Layout: r.Layout()})
	}
	if a.stream.Len() > 0 && !a.stream.Equals(&attributes) {
		o.endStream(a, now)
		if a.resume == nil { // otherwise the totals may begin in the middle of a run
			a.tally.Opened(r.Committed() == 0)
		}
	}
	a.stream, a.name = attributes, a.Name
}

func (o *owner) endStream(a *agent, now time.Time) {
	o.addEnded(a, tally.Stream{Layout: a.layout, Agent: a.tally}, now)
	a.tally.Release() // the totals no longer change
	a.tally = a.tally.Next(o.cfg.Shape)
	o.limit(a)
	o.watch(a)
}

// followClock ends the agent's stream if its newest point is ahead of the clock, because
// the clock was set back. The points of a stream must increase in time, so the totals
// continue in another stream. The last point of the ended stream is later than its others,
// unless an earlier process has exported them.
func (o *owner) followClock(a *agent, now time.Time) {
	latest := max(a.start.UnixNano(), a.latest)
	if latest > now.UnixNano() {
		o.endStream(a, now)
		a.ended[len(a.ended)-1].End = time.Unix(0, latest).Add(2 * time.Millisecond)
	}
}

// addEnded adds a stream that has ended. The agent's totals begin now.
func (o *owner) addEnded(a *agent, s tally.Stream, now time.Time) {
	const lost = "times since its metrics were last exported, so events of the oldest period are missing from the metrics; " +
		"check the exporters, and disable attributes that change at each restart"
	s.Name, s.Attributes, s.Start, s.End = a.name, a.stream, a.start, now
	a.ended = append(a.ended, s)
	a.start, a.latest, a.dirty = now, 0, true
	switch {
	case len(a.ended) > maxEnded:
		a.forgetEnded(1)
		o.report(a, warn(notice.StreamLost, fmt.Sprintf("agent's resource attributes changed more than %d %s", maxEnded, lost), nil))
	case a.Holder.Isolated() && o.endedOf(a.Holder) > maxEndedHeld:
		a.forgetEnded(1)
		o.report(a, warn(notice.StreamLost, fmt.Sprintf("resource attributes of agents in %v changed more than %d %s", a.Holder, maxEndedHeld, lost), nil))
	}
}

// endedOf returns the number of ended streams of a holder.
func (o *owner) endedOf(h Holder) (n int) {
	for _, a := range o.order {
		if a.Holder == h {
			n += len(a.ended)
		}
	}
	return n
}

// forgetEnded forgets the oldest n ended streams.
func (a *agent) forgetEnded(n int) {
	if n > 0 {
		a.ended, a.dirty = a.ended[n:], true
		a.shown.ended = max(a.shown.ended-n, 0)
	}
}
