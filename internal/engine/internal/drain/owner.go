// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config configures how rings are drained.
type Config struct {
	Shape       *tally.Shape
	Observe     bool          // leave the rings unchanged
	RunInterval time.Duration // the agents' flush interval; see longestWait
	MaxRings    int           // maximum number of agents, [MaxRings] but for tests; no limit if zero
	StaleAfter  time.Duration // how long an agent that has exited is still reported
	// Stream returns the attributes under which a backend sees an agent's totals. It gets
	// a snapshot without totals. If the attributes change, a new stream begins: the totals
	// start at zero. If it is nil, they never change.
	Stream func(*Snapshot) attribute.Set
	// Handler receives what is read from rings.
	Handler Handler
}

// Handler receives what is read from rings, in order. Its functions may be nil. Draining waits
// for them.
type Handler struct {
	// Events receives every event before it is committed. The batch is valid only during the
	// call.
	Events func(Agent, ringbuf.Batch)
	// Transfer is called for each transfer whose events were all read. It is valid during the call.
	Transfer func(*Agent, *tally.Transfer)
	// Error is called for each error event.
	Error func(*Agent, tally.Error)
}

// owner owns every reader, tally and position. See the package documentation.
type owner struct {
	cfg   *Config
	env   env
	saves bool              // totals are stored before positions are committed
	pages *checkpoint.Pages // nil unless saves

	agents map[string]*agent   // by ID; without predecessors
	absent int                 // number of these agents whose rings weren't found since the start
	rings  map[Holder]int      // number of the others
	files  map[files.ID]*agent // by the file of their ring; see agentOf
	order  []*agent            // agents with totals; see compare
	visits []*agent            // the same, in the order in which they appeared: round then reads memory in order
	due    time.Time           // the first time when the ring of an agent is due or is to be opened again, as of the last round

	batch     *batch    // the current save
	lastSaved *agent    // the last agent in a save without a collection; nil before the first
	failing   bool      // the newest save failed
	retryAt   time.Time // when to save again after a failure
	last      time.Time // time of the last step

	retireAt time.Time // when to look for agents to retire

	waiting     []*collect // collections that aren't answered
	collections uint64
	ending      bool      // rings are no longer read
	stopBy      time.Time // the deadline of a stop; zero before that
	stopped     bool      // all rings are closed

	work   map[Holder]int // of containers since workAt; see maxWork
	workAt time.Time

	counted uint64 // events, for the loop's telemetry
}

// Message is a message to an owner. A [Source] sends the types in message.go.
type Message interface {
	apply(o *owner, now time.Time)
}

// env is what an owner calls besides the sources of its rings. Its methods don't block. [Loop]
// implements it, and so does the simulation.
type env interface {
	// save stores ops. The result arrives as a saved message.
	save(b *batch, ops []checkpoint.Op)
	reply(c *collect)
	report(n notice.Notice)
}

// newOwner returns an owner. If it saves, it must get all checkpoints before its first step; see
// load.
func newOwner(cfg *Config, e env, saves bool) *owner {
	return &owner{
		cfg: cfg, env: e, saves: saves && !cfg.Observe,
		agents: make(map[string]*agent), rings: make(map[Holder]int), files: make(map[files.ID]*agent), work: make(map[Holder]int),
	}
}

// step processes messages and does everything that is due. It returns the time of the next step.
func (o *owner) step(now time.Time, messages []Message) (next time.Time) {
	if now.Sub(o.workAt) >= workIn {
		o.forgive(now)
	}
	for _, m := range messages {
		m.apply(o, now)
	}
	if !o.stopped {
		o.round(now)
		o.saveDue(now)
		o.collectDue(now)
		o.answerDue(now)
		o.retireStale(now)
		o.stopDue(now)
	}
	o.last = now
	return o.wake(now)
}

// idleStep is the longest time between two steps.
const idleStep = time.Second

// wake returns the time of the next step if no message arrives.
func (o *owner) wake(now time.Time) time.Time {
	next := now.Add(idleStep)
	if o.stopped {
		return next
	}
	if !o.ending && o.due.Before(next) {
		next = o.due
	}
	if o.batch != nil && next.Sub(now) > slowSave/4 {
		next = now.Add(slowSave / 4)
	}
	if (len(o.waiting) > 0 || !o.stopBy.IsZero()) && o.batch == nil {
		return now // for the next slice
	}
	waiting := o.waiting
	if o.batch != nil {
		waiting = slices.Concat(waiting, o.batch.collects)
	}
	for _, c := range waiting {
		if c.deadline.Before(next) {
			next = c.deadline
		}
	}
	return next
}

// compare is the order of agents: by page, so that those that are stored together share pages, then by ID. An
// agent comes after its predecessors.
func compare(a, b *agent) int {
	return cmp.Or(a.page-b.page, strings.Compare(a.ID, b.ID), -cmp.Compare(len(a.entryID()), len(b.entryID())), strings.Compare(a.entryID(), b.entryID()))
}

// after returns the index of the first agent that follows another one and its predecessors. It is 0 if a
// is nil.
func (o *owner) after(a *agent) int {
	if a == nil {
		return 0
	}
	at, _ := slices.BinarySearchFunc(o.order, a, func(b, a *agent) int {
		return cmp.Or(b.page-a.page, strings.Compare(b.ID, a.ID), -1)
	})
	return at
}

// enter adds an agent to order, so that it is drained and reported.
func (o *owner) enter(a *agent) {
	at, found := slices.BinarySearchFunc(o.order, a, compare)
	if !found {
		o.order, o.visits = slices.Insert(o.order, at, a), append(o.visits, a)
	}
}

// drop removes an agent.
func (o *owner) drop(a *agent) {
	if o.agents[a.ID] == a {
		delete(o.agents, a.ID)
		o.own(a, files.ID{})
		if a.absent() {
			o.absent--
		} else {
			o.leave(a.Holder)
		}
	}
	if at, found := slices.BinarySearchFunc(o.order, a, compare); found {
		o.order = slices.Delete(o.order, at, at+1)
		o.visits = slices.DeleteFunc(o.visits, func(b *agent) bool { return b == a })
	}
	if o.saves {
		o.pages.Remove(a.entryID())
	}
}

// watch makes an agent's totals pass transfers and errors to the handler.
func (o *owner) watch(a *agent) {
	var w tally.Watch
	h := &o.cfg.Handler
	if h.Transfer != nil {
		w.Transfer = func(t *tally.Transfer) { h.Transfer(&a.Agent, t) }
	}
	if h.Error != nil {
		w.Error = func(e tally.Error) { h.Error(&a.Agent, e) }
	}
	a.tally.Watch(w)
}

// report reports a notice about an agent.
func (o *owner) report(a *agent, n notice.Notice) {
	n.Path, n.Pod, n.Container = a.Path, a.Holder.Pod, a.Holder.Container
	o.env.report(n)
}

func info(k notice.Kind, text string) notice.Notice {
	return notice.Notice{Kind: k, Level: slog.LevelInfo, Text: text}
}

func warn(k notice.Kind, text string, err error) notice.Notice {
	return notice.Notice{Kind: k, Level: slog.LevelWarn, Text: text, Err: err}
}
