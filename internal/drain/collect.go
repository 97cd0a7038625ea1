package drain

import (
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Snapshot is a copy of what is known about an agent.
type Snapshot struct {
	Agent
	Layout ringbuf.Layout
	Start  time.Time // of the totals
	Up     Up
	Totals *tally.Totals
}

// Up tells whether another process has the agent's ring open.
type Up uint8

// The values of [Up].
const (
	UpUnknown Up = iota // the kernel can't tell
	UpNo
	UpYes
)

// collect is a request for the totals of all agents.
type collect struct {
	deadline time.Time
	last     bool       // nothing is read after it
	into     []Snapshot // memory of an earlier collection, to be used again
	done     func(collected)

	number    uint64
	snapshots []Snapshot
	taken     bool
	saved     bool
}

// collected is the answer to a collect message.
type collected struct {
	number    uint64
	snapshots []Snapshot
}

func (c *collect) apply(o *owner, now time.Time) {
	if o.stopped {
		o.answer(c, true)
		return
	}
	o.drainAll(now)
	o.ending = o.ending || c.last
	if !o.saves {
		o.snapshot(c, now)
		o.answer(c, true)
	} else {
		o.waiting = append(o.waiting, c)
	}
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
			o.snapshot(c, now)
			o.answer(c, false)
		}
		return rest
	}
	o.waiting = late(o.waiting)
	if o.batch != nil {
		o.batch.collects = late(o.batch.collects)
	}
}

// snapshot copies the totals of all agents that are to be reported.
func (o *owner) snapshot(c *collect, now time.Time) {
	if c.taken {
		return
	}
	c.taken = true
	o.collections++
	c.number = o.collections
	c.snapshots = c.into[:0]
	for _, a := range o.order {
		if o.stale(a, now) {
			continue
		}
		var into *tally.Totals
		if n := len(c.snapshots); n < cap(c.snapshots) {
			into = c.snapshots[:n+1][n].Totals
		}
		c.snapshots = append(c.snapshots, Snapshot{
			Agent: a.Agent, Layout: a.layout, Start: a.start, Up: a.up(), Totals: a.tally.Snapshot(into),
		})
		a.shown = shown{collection: c.number, lastEvent: a.lastEvent}
	}
}

func (a *agent) up() Up {
	switch a.attendance {
	case attended:
		return UpYes
	case unattended:
		return UpNo
	default:
		return UpUnknown
	}
}

// answer replies to a collection. If what it has seen isn't stored, a crash may
// count it twice.
func (o *owner) answer(c *collect, stored bool) {
	if !stored && !o.failing {
		o.do(reportEffect{notice.Notice{
			Kind: notice.StoreSlow, Level: slog.LevelWarn,
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
