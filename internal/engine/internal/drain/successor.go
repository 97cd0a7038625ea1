// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A backend identifies totals by the attributes under which they are exported, so totals
// that continue under other attributes would count the past twice. When the attributes of
// an agent change, a successor therefore begins at zero. Its predecessor has no ring, is
// exported once more, and is dropped when that was delivered.

// maxEnded limits the predecessors of an agent, because a container can restart its agents with
// other attributes all the time. A backend may be down while a few changes are rolled out.
const maxEnded = 4

// describe sets what is known about an agent. If it is exported under other attributes from now
// on, its successor begins with the events in r. What is known of an agent stays if less is known now, unless
// that is about another process.
func (o *owner) describe(a *agent, as Agent, r *ringbuf.Reader, now time.Time) {
	known := a.stream.Len() > 0 || o.cfg.Stream == nil && a.Attribution <= Partly
	another := as.Process.Len() > 0 && a.Process.Len() > 0 && as.Process != a.Process
	switch less := as.Attribution == Left || as.Attribution == Partly && !another; {
	case known && (less || as.Attribution == Sought):
		as.Resource, as.Process = a.Resource, a.Process
	case as.Attribution != Sought:
		attributes := o.attributes(as, r.Layout())
		if a.stream.Len() > 0 && !a.stream.Equals(&attributes) {
			o.succeed(a, now, now)
			if a.resume == nil { // otherwise the totals may begin in the middle of a run
				a.tally.Opened(r.Committed() == 0 && r.Position() == 0)
			}
		}
		a.stream = attributes
	}
	o.leave(a.Holder)
	a.Agent = as
	o.rings[a.Holder]++
}

// attributes returns the attributes under which the totals of an agent are exported.
func (o *owner) attributes(as Agent, l ringbuf.Layout) (set attribute.Set) {
	if o.cfg.Stream != nil {
		set = o.cfg.Stream(&Snapshot{Agent: as, Layout: l})
	}
	return set
}

// followClock begins a successor if the newest point of an agent is ahead of the clock, because
// the clock was set back: the points of a stream must increase in time. The last point of the
// predecessor is later than its others, unless an earlier process has exported them.
func (o *owner) followClock(a *agent, now time.Time) {
	if latest := max(a.start.UnixNano(), a.latest); a.ended.IsZero() && latest > now.UnixNano() {
		o.succeed(a, time.Unix(0, latest).Add(2*time.Millisecond), now)
	}
}

// succeed makes a its own successor, and adds a predecessor whose totals end at a time.
func (o *owner) succeed(a *agent, end, now time.Time) {
	old := &agent{Agent: a.Agent, page: a.page, tally: a.tally, layout: a.layout, start: a.start, stream: a.stream, ended: end, dirty: true}
	old.Attribution = Known
	for slices.ContainsFunc(o.order, func(b *agent) bool { return compare(old, b) == 0 }) {
		old.start = old.start.Add(1) // the clock is so coarse that another one began at the same time
	}
	o.enter(old)
	a.tally = a.tally.Next(o.cfg.Shape)
	a.start, a.latest, a.dirty = now, 0, true
	o.watch(a)
	var ended []*agent
	for _, b := range o.order {
		if b.ID == a.ID && !b.ended.IsZero() {
			ended = append(ended, b)
		}
	}
	if len(ended) > maxEnded {
		o.drop(ended[0])
		o.report(a, warn(notice.StreamLost, "agent's resource attributes changed, or the clock was set back, more than "+strconv.Itoa(maxEnded)+
			" times since its metrics were last exported, so events of the oldest period are missing from the metrics; "+
			"check the exporters and the clock, and disable attributes that change at each restart", nil))
	}
}

// entryID returns the ID of an agent's checkpoint.
func (a *agent) entryID() string {
	if a.ended.IsZero() {
		return a.ID
	}
	return a.ID + checkpoint.Separator + strconv.FormatInt(a.start.UnixNano(), 10)
}
