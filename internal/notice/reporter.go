// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// hold is how long a notice waits for others that it may be merged with.
	hold = 250 * time.Millisecond
	// window is the time in which maxSingle subjects of a kind are reported one
	// by one. The others are merged at its end.
	window    = 2 * time.Second
	maxSingle = 8
	// repeat is how often at most a kind is reported of one subject. Whoever can
	// write to a ring can break it with every drain.
	repeat = time.Minute
	// maxSubjects bounds how many subjects are remembered for that long.
	maxSubjects = 4096
)

// Reporter reports notices. It is safe for concurrent use.
type Reporter struct {
	report func(Notice)
	now    func() time.Time

	mu       sync.Mutex
	subjects map[subject]*history
	arrived  uint64       // counts notices
	opened   time.Time    // when the current window opened
	single   map[Kind]int // how many were reported one by one in the current window
	timer    *time.Timer
	armed    bool // the timer runs
}

type subject struct {
	kind Kind
	path string
}

// history is what was reported of a subject, and what still is to be.
type history struct {
	reported time.Time // zero if nothing was
	latest   Notice
	arrival  uint64 // of latest
	pending  int    // notices since reported
}

// New returns a Reporter that calls report for each line. It calls report from a
// goroutine of its own, from Flush or from Close, with no lock held; report must
// be safe for concurrent use.
func New(report func(Notice), now func() time.Time) *Reporter {
	return &Reporter{report: report, now: now, subjects: make(map[subject]*history), single: make(map[Kind]int)}
}

// Report reports n soon, alone or merged with others. It never calls the report
// function itself, so a slow logger doesn't delay the caller.
func (r *Reporter) Report(n Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := subject{kind: n.Kind, path: n.Path}
	h := r.subjects[key]
	if h == nil {
		h = &history{}
		r.subjects[key] = h
	}
	r.arrived++
	h.latest, h.arrival = n, r.arrived
	h.pending++
	r.arm(hold)
}

// Flush reports at once what waits to be merged. What was reported of the same
// subject within the last minute keeps waiting.
func (r *Reporter) Flush() { r.tell(r.take(true, false)) }

// Close reports everything that is left. It is called last, when nobody reports
// any more.
func (r *Reporter) Close() { r.tell(r.take(true, true)) }

func (r *Reporter) tick() { r.tell(r.take(false, false)) }

// batch is the notices of one kind that are reported together.
type batch struct {
	list  []Notice
	merge bool
	more  bool // others were reported before
}

// tell merges and reports notices, with no lock held: neither is quick.
func (r *Reporter) tell(batches []batch) {
	for _, b := range batches {
		if b.merge {
			b.list = sum(b.list, b.more)
		}
		for _, n := range b.list {
			r.report(n)
		}
	}
}

// arm has tick called after d, unless it will be anyway. The caller holds mu.
func (r *Reporter) arm(d time.Duration) {
	switch {
	case r.armed:
		return
	case r.timer == nil:
		r.timer = time.AfterFunc(d, r.tick)
	default:
		r.timer.Reset(d)
	}
	r.armed = true
}

// take returns what is to be reported now. With end set the window ends now;
// with all set, nothing waits for its minute to pass.
func (r *Reporter) take(end, all bool) (batches []batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	end = end || now.Sub(r.opened) >= window
	ready := r.ready(now, all || len(r.subjects) > maxSubjects)
	for _, kind := range order(ready) {
		list := ready[kind]
		switch n := r.single[kind]; {
		case n+len(list) <= maxSingle:
			r.single[kind] += len(list)
			batches = append(batches, batch{list: done(list, now)})
		case end:
			batches = append(batches, batch{list: done(list, now), merge: true, more: n > 0})
		}
	}
	if end {
		r.opened = now
		clear(r.single)
	}
	r.rearm(all)
	return batches
}

// ready returns what may be reported now, by kind, and forgets subjects of which
// nothing was for long.
func (r *Reporter) ready(now time.Time, hurry bool) map[Kind][]*history {
	ready := make(map[Kind][]*history)
	for key, h := range r.subjects {
		due := hurry || now.Sub(h.reported) >= repeat
		switch {
		case due && h.pending > 0:
			ready[key.kind] = append(ready[key.kind], h)
		case due:
			delete(r.subjects, key)
		}
	}
	for _, list := range ready {
		slices.SortFunc(list, func(a, b *history) int { return cmp.Compare(a.arrival, b.arrival) })
	}
	return ready
}

// order returns the kinds in the order in which they came up.
func order(ready map[Kind][]*history) []Kind {
	kinds := make([]Kind, 0, len(ready))
	for kind := range ready {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Compare(ready[a][0].arrival, ready[b][0].arrival) })
	return kinds
}

// done returns the notices of a list and marks them as reported.
func done(list []*history, now time.Time) []Notice {
	notices := make([]Notice, len(list))
	for i, h := range list {
		notices[i] = h.latest
		notices[i].Again = h.pending - 1
		*h = history{reported: now}
	}
	return notices
}

// rearm sets the timer again if something is left to report. The caller holds mu.
func (r *Reporter) rearm(closing bool) {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.armed = false
	for _, h := range r.subjects {
		if h.pending > 0 && !closing {
			r.arm(window)
			return
		}
	}
}
