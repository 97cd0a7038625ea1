// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"log/slog"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Snapshot is a copy of what is known about an agent.
type Snapshot struct {
	Agent
	Layout ringbuf.Layout
	Start  time.Time // of the totals
	Up     Up
	Totals *tally.Totals
	// Processes are those that the agent's stores belong to, oldest first, if it
	// has stores of NIXL's prometheus_mp exporter instead of a ring.
	Processes []Process
}

// Process is one process of an agent, as its store describes it.
type Process struct {
	PID       int64  // in the process's own PID namespace
	Instance  uint64 // distinguishes the agents of the process
	Host      string // that the process runs on, or its container's name
	LocalRank string // empty if the process doesn't set it
	Start     time.Time
	Totals    *tally.Totals // of this process alone
}

// LayoutName returns the layout of the agent's ring or stores.
func (s *Snapshot) LayoutName() string {
	if len(s.Processes) > 0 {
		return semconv.LayoutStore
	}
	return s.Layout.String()
}

// Up is what the kernel says about who has an agent's ring open.
type Up uint8

// The values of [Up].
const (
	UpUnknown Up = iota // the kernel can't tell, or wasn't asked yet
	UpNo                // no other process
	UpYes               // another process
)

// collect is a request for the totals of all agents.
type collect struct {
	deadline time.Time
	last     bool // nothing is read after it
	done     func(collected)

	number    uint64 // 0 until the first agent is taken
	after     string // the ID of the last agent that was taken
	complete  bool
	snapshots []Snapshot
}

// collected is the answer to a collect message.
type collected struct {
	number    uint64
	snapshots []Snapshot
}

// maxSlice bounds how many agents one step collects or stores: nothing is
// drained meanwhile.
const maxSlice = 128

func (c *collect) apply(o *owner, _ time.Time) {
	if o.stopped {
		o.answer(c, true)
		return
	}
	o.waiting = append(o.waiting, c)
}

// collectDue takes the next agents of a collection. With a store, that is done
// as they are stored.
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

// slice returns the agents that a collection takes next. Before the first, all
// rings are drained: an earlier collection may have ended just now, and begun a new
// interval for the fill of the rings.
func (o *owner) slice(c *collect, now time.Time) []*agent {
	if c.number == 0 {
		o.collections++
		c.number = o.collections
		o.drainAll(now)
		o.ending = o.ending || c.last
	}
	from, found := slices.BinarySearchFunc(o.order, c.after, byID)
	if found {
		from++
	}
	list := o.order[from:min(from+maxSlice, len(o.order))]
	if len(list) > 0 {
		c.after = list[len(list)-1].ID
	}
	c.complete = from+len(list) == len(o.order)
	return list
}

// snapshot copies the totals of an agent, if it is to be reported.
func (o *owner) snapshot(c *collect, a *agent, now time.Time) {
	if o.stale(a, now) {
		return
	}
	c.snapshots = append(c.snapshots, Snapshot{
		Agent: a.Agent, Layout: a.layout, Start: a.start, Up: a.up, Totals: a.tally.Snapshot(nil),
	})
	a.shown = shown{collection: c.number, lastEvent: a.lastEvent}
}

// answerDue answers the collections that can't wait for a save any longer: their
// deadline is over, or the store fails or hangs.
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
	if o.saves {
		o.waiting = late(o.waiting)
	}
	if o.batch != nil {
		o.batch.collects = late(o.batch.collects)
	}
}

// answer replies to a collection. If what it has seen isn't stored, a crash may
// count it twice.
func (o *owner) answer(c *collect, stored bool) {
	if !stored && !o.failing {
		o.do(reportEffect{notice.Notice{
			Kind: notice.ExportUnsaved, Level: slog.LevelWarn,
			Text: "totals were exported before their checkpoint was stored; a crash right now may count events twice; check the storage extension",
		}})
	}
	o.do(replyEffect{c})
}

// delivered says that what a collection has seen has arrived.
type delivered struct{ number uint64 }

func (m delivered) apply(o *owner, _ time.Time) {
	for _, a := range o.order {
		if a.shown.collection == m.number {
			a.delivered = a.shown.lastEvent
		}
	}
}
