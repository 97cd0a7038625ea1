// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"log/slog"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// Collection is the totals of all agents at one time.
type Collection struct {
	Snapshots []Snapshot
	number    uint64 // 0 until the first agent is collected
}

// collect is a request for the totals of all agents.
type collect struct {
	deadline time.Time
	last     bool        // without a store, rings are no longer read after this collection
	expired  func() bool // nobody waits for the answer; nil for never
	done     func(Collection)

	Collection
	after    *agent // the last collected agent; nil before the first
	complete bool
}

// maxSlice limits the number of agents that one step collects or stores, because rings
// aren't drained during a step.
const maxSlice = 128

func (c *collect) apply(o *owner, _ time.Time) {
	if c.expired == nil || !c.expired() {
		o.waiting = append(o.waiting, c)
	}
}

// collectDue collects the next agents. With a store, begin does this instead.
func (o *owner) collectDue(now time.Time) {
	if o.saves || len(o.waiting) == 0 {
		return
	}
	c := o.waiting[0]
	for _, a := range o.slice(c, now) {
		o.snapshot(c, a, now)
	}
	if c.complete {
		o.waiting = o.waiting[1:]
		o.answer(c, true)
	}
}

// slice returns the next agents of a collection. Before the first agents, it drains all
// rings: an earlier collection may have just started a new interval for the fill of the
// rings.
func (o *owner) slice(c *collect, now time.Time) []*agent {
	if c.number == 0 {
		o.collections++
		c.number = o.collections
		c.Snapshots = make([]Snapshot, 0, len(o.order))
		o.drainAll(now)
		for _, a := range slices.Clone(o.order) {
			o.followClock(a, now)
		}
		o.ending = o.ending || c.last && !o.saves // with a store, what is read later is stored for the next process
	}
	from := o.after(c.after)
	to := min(from+maxSlice, len(o.order))
	if to > from {
		to = o.after(o.order[to-1])
	}
	list := o.order[from:to]
	if c.complete = to == len(o.order); !c.complete {
		last := o.order[to-1] // its ID may change
		c.after = &agent{Agent: Agent{ID: last.ID}, page: last.page}
	}
	return list
}

// snapshot adds a copy of the agent's totals to a collection, unless the agent is stale.
func (o *owner) snapshot(c *collect, a *agent, now time.Time) {
	stream := a.stream
	if a.Attribution == Sought {
		if o.saves || !c.last {
			return // a later collection, or the next process, exports the totals
		}
		if stream.Len() == 0 {
			stream = o.attributes(a.Agent, a.layout) // as far as they are known
		}
	}
	a.shown.collection, a.shown.news = c.number, a.news
	if o.stale(a, now) {
		return
	}
	a.latest = now.UnixNano()
	c.Snapshots = append(c.Snapshots, Snapshot{
		Agent: a.Agent, Layout: a.layout, Stream: stream, Start: a.start, End: a.ended, Up: a.exit.up, Totals: a.tally.Snapshot(),
	})
}

// answerDue answers collections that can no longer wait for a save, because their
// deadline has passed, or the store fails or hangs.
func (o *owner) answerDue(now time.Time) {
	hung := o.failing || o.batch != nil && o.batch.reported
	late := func(list []*collect) (rest []*collect) {
		for _, c := range list {
			if !hung && now.Before(c.deadline) {
				rest = append(rest, c)
				continue
			}
			for !c.complete {
				for _, a := range o.slice(c, now) {
					o.snapshot(c, a, now)
				}
			}
			o.answer(c, false)
		}
		return rest
	}
	if o.batch != nil { // these began earlier
		o.batch.collects = late(o.batch.collects)
	}
	if o.saves {
		o.waiting = late(o.waiting)
	}
}

// answer replies to a collection. If its totals aren't stored, a crash may count events
// twice.
func (o *owner) answer(c *collect, stored bool) {
	if !stored && !o.failing {
		o.env.report(notice.Notice{
			Kind: notice.ExportUnsaved, Level: slog.LevelWarn,
			Text: "totals were exported before their checkpoint was stored; a crash at this moment may count events twice; check the storage extension",
		})
	}
	o.env.reply(c)
}

// delivered reports that a collection was exported successfully.
type delivered struct{ number uint64 }

func (m delivered) apply(o *owner, _ time.Time) {
	for _, a := range slices.Clone(o.order) {
		if a.shown.collection != m.number {
			continue
		}
		if a.delivered = a.shown.news; !a.ended.IsZero() {
			o.drop(a)
		}
	}
}
