// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// agent is the owner's state for one agent. It outlives the agent's process and ring:
// an agent that restarts keeps its totals.
type agent struct {
	// What round needs for an idle ring comes first, in one cache line, because it isn't in the processor's caches by then.
	reader *ringbuf.Reader // nil while the agent has no open ring
	wait   time.Duration   // latest interval between two drains
	due    time.Time       // next drain
	fresh  int             // events counted by the current drain
	exit   exit

	reopenAt time.Time // when to open a closed ring again; zero if there is none
	Agent
	source Source   // nil if the agent is absent
	file   files.ID // of reader
	page   int      // see [checkpoint.PageOf]

	restartedAt time.Time // when the ring last showed a restart
	// resume is the position of the totals in the ring. The ring is moved there when
	// it is opened again. It is nil if the position needn't change.
	resume *checkpoint.Mark

	tally  *tally.Agent
	layout ringbuf.Layout
	start  time.Time           // start of the totals
	latest int64               // Unix time of their newest point, in nanoseconds; 0 before the first
	stream attribute.Set       // attributes under which the totals are exported
	ended  time.Time           // when a successor began; zero if there is none
	count  func(ringbuf.Batch) // owner.count; a field, because a closure is allocated
	work   int                 // of counting the events of the current drain

	// generation changes whenever a position is committed or a ring is attached, so
	// that an earlier save no longer applies.
	generation uint64
	heldSince  time.Time // when the oldest uncommitted event was read; zero if there is none
	dirty      bool      // the totals include committed changes that aren't stored

	lastEvent time.Time // when events were last found, or the ring was opened, or closed to be opened again
	news      uint64    // number of changes of lastEvent; two can have the same time
	delivered uint64    // news as of the newest delivered collection
	shown     struct {  // in the newest collection
		collection, news uint64
	}
}

// absent reports whether the agent has stored totals, but its ring wasn't found since the start.
func (a *agent) absent() bool { return a.source == nil && a.ended.IsZero() }

// held returns the number of events that were read but not committed.
func (a *agent) held() int {
	if a.reader == nil {
		return 0
	}
	return a.reader.Uncommitted()
}

// heard sets lastEvent.
func (a *agent) heard(now time.Time) {
	a.lastEvent = now
	a.news++
}

// attach gives the agent a ring.
func (a *agent) attach(r *ringbuf.Reader, now time.Time) {
	a.generation++
	a.reader, a.reopenAt, a.layout = r, time.Time{}, r.Layout()
	a.exit = exit{}
	a.heldSince, a.due = time.Time{}, now
	a.heard(now)
	a.wait = firstWait
	a.tally.Found(0, r.Capacity())
}

// busy reports whether the agent may still write to its current ring.
func (a *agent) busy() bool { return a.reader != nil && a.exit.gone.IsZero() && a.exit.up == UpYes }

// detach removes the ring from the agent and returns it. The caller must close it.
// Events that were counted but not committed must not be counted again.
func (a *agent) detach() *ringbuf.Reader {
	r := a.reader
	a.reader, a.heldSince, a.dirty = nil, time.Time{}, true
	a.exit.up = UpUnknown // whether all events were counted remains of interest
	return r
}

// commit commits all events that were read.
func (a *agent) commit() error {
	a.generation++
	return a.reader.Commit()
}

// unsaved reports whether the agent has changes that aren't stored.
func (a *agent) unsaved() bool {
	return a.dirty || a.held() > 0
}

// hold updates heldSince.
func (a *agent) hold(now time.Time) {
	switch {
	case a.held() == 0:
		a.heldSince = time.Time{}
	case a.heldSince.IsZero():
		a.heldSince = now
	}
}
