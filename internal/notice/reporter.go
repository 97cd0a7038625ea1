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
	// hold is the time that a notice waits for others to be merged with.
	hold = 250 * time.Millisecond
	// window is the time in which maxSingle subjects of a kind are reported one by
	// one. At its end, the others are merged.
	window    = 2 * time.Second
	maxSingle = 8
	// repeat is the minimum time between two reports of the same kind and subject.
	// Any process that can write to a ring can break it repeatedly.
	repeat = time.Minute
	// maxSubjects limits the number of subjects that are remembered for this time.
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
	single   map[Kind]int // number of single reports in the current window
	timer    *time.Timer
	armed    bool // whether the timer runs
	emitting int  // number of calls of emit
	emitted  sync.Cond
}

type subject struct {
	kind Kind
	path string
}

// history is the state of a subject.
type history struct {
	reported time.Time // time of the last report; zero if there was none
	latest   Notice
	arrival  uint64 // sequence number of latest
	pending  int    // number of notices since reported
}

// New returns a Reporter that calls report for each line. report must be safe for concurrent
// use: it is called from a timer's goroutine, from Flush and from Close, without a lock held.
func New(report func(Notice), now func() time.Time) *Reporter {
	r := &Reporter{report: report, now: now, subjects: make(map[subject]*history), single: make(map[Kind]int)}
	r.emitted.L = &r.mu
	return r
}

// Report schedules a report of n, alone or merged with others. It never calls the report
// function directly, so a slow logger doesn't delay the caller.
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

// Flush immediately reports notices that wait to be merged, and returns once they are reported.
// Notices of subjects that were reported within the last minute keep waiting.
func (r *Reporter) Flush() { r.finish(false) }

// Close reports all remaining notices, and returns once they are reported. Report must not be
// called afterwards.
func (r *Reporter) Close() { r.finish(true) }

// finish also waits for what the timer reports at the same time.
func (r *Reporter) finish(all bool) {
	r.emit(true, all)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.emitting > 0 {
		r.emitted.Wait()
	}
}

func (r *Reporter) tick() { r.emit(false, false) }

// batch is a list of notices of one kind that are reported together.
type batch struct {
	list  []Notice
	merge bool
	more  bool // whether others were reported before
}

// emit merges and reports notices. Both can be slow, so it doesn't hold mu meanwhile. For end
// and all, see take.
func (r *Reporter) emit(end, all bool) {
	r.mu.Lock()
	batches := r.take(end, all)
	r.emitting++
	r.mu.Unlock()
	for _, b := range batches {
		if b.merge {
			b.list = sum(b.list, b.more)
		}
		for _, n := range b.list {
			r.report(n)
		}
	}
	r.mu.Lock()
	r.emitting--
	r.mu.Unlock()
	r.emitted.Broadcast()
}

// arm starts the timer, unless it already runs. The caller holds mu.
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

// take returns the notices to report now. If end is set, the window ends now. If all is set,
// notices don't wait until repeat has passed. The caller holds mu.
func (r *Reporter) take(end, all bool) (batches []batch) {
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

// ready returns the notices that may be reported now, by kind, and removes subjects without
// recent notices.
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

// order returns the kinds in order of their first notice.
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

// rearm restarts the timer if notices are left. The caller holds mu.
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
