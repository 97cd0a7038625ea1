// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A process that writes to a file all the time, such as a log in /tmp, makes a
// file system event with each write. Looking at the file each time would cost up
// to a core. So a file is looked at when it changes after a time without changes,
// and then less and less often for as long as the changes go on.
const (
	// firstGap is between the first two looks. An agent that restarts sets its
	// file's size and settles within this time. After a file was created, renamed
	// or removed, the next look is never later than that.
	firstGap = settling
	// agentGap bounds how late a change of an open ring's file is seen: its agent
	// may have restarted.
	agentGap = time.Second
	// maxRepeats bounds how many events without news are taken within firstGap, apart
	// from the fewRepeats that an agent makes while it starts. Taking an event costs
	// more than leaving it: the kernel merges equal ones.
	maxRepeats = 64
	fewRepeats = 8
)

// pace is how often a path is looked at because it changes.
type pace struct {
	last    time.Time     // when it was looked at
	gap     time.Duration // until it may be looked at again
	changed bool          // since last
	named   bool          // the path has another file since last, or none
	repeats int           // events since last
}

// next returns when a path that has changed is to be looked at.
func (p *pace) next() time.Time {
	if p.named {
		return p.last.Add(min(p.gap, firstGap))
	}
	return p.last.Add(p.gap)
}

// calm reports whether the path hasn't changed for a while.
func (p *pace) calm(now time.Time) bool { return now.Sub(p.last) > 2*p.gap }

// looked notes that the path is looked at now.
func (p *pace) looked(now time.Time, limit time.Duration) {
	gap := min(2*p.gap, limit)
	if p.calm(now) {
		gap = firstGap
	}
	*p = pace{last: now, gap: gap}
}

// due returns when a path is to be looked at; zero if the next walk will do.
func (r *record) due() (at time.Time) {
	if r.state == refused && r.wait < ProbeInterval {
		at = r.tried.Add(r.wait)
	}
	if r.changed && (at.IsZero() || r.next().Before(at)) {
		at = r.next()
	}
	return at
}

// change looks at a path that has changed, now or soon. named says that the path
// may have another file. The result says whether that was news.
func (t *tracker) change(r *record, named bool) bool {
	r.changed, r.named = true, r.named || named
	if t.cfg.Now().Before(r.next()) {
		t.schedule(r)
		r.repeats++
		return r.repeats <= fewRepeats
	}
	t.wake(r)
	return true
}

// wake looks at a path that is due.
func (t *tracker) wake(r *record) {
	if now := t.cfg.Now(); r.changed && !now.Before(r.next()) {
		limit := maxRetry
		if r.ring != nil {
			limit = agentGap
		}
		r.looked(now, limit)
		if r.state == open {
			r.info = ringbuf.FileInfo{} // the event is a change, whatever the file's times say
		}
	}
	t.visit(r)
}

// schedule has a path looked at when it is due.
func (t *tracker) schedule(r *record) {
	at := r.due()
	if at.IsZero() {
		return
	}
	t.soon[r.Path] = r
	if t.soonest.IsZero() || at.Before(t.soonest) {
		t.soonest = at
	}
}

// wakeDue looks at what is due.
func (t *tracker) wakeDue() {
	now := t.cfg.Now()
	if t.soonest.IsZero() || now.Before(t.soonest) {
		return
	}
	waiting := t.soon
	t.soon, t.soonest = make(map[string]*record), time.Time{}
	for _, r := range waiting {
		if at := r.due(); !at.IsZero() && !now.Before(at) {
			t.wake(r)
		}
		t.schedule(r)
	}
}

// untilDue returns the time until something is due.
func (t *tracker) untilDue() time.Duration {
	if t.soonest.IsZero() {
		return maxRetry
	}
	return max(t.soonest.Sub(t.cfg.Now()), time.Millisecond)
}

// flood counts events without news.
type flood struct {
	begun   time.Time
	repeats int
}

// more counts one more and returns for how long no event is to be taken.
func (f *flood) more(now time.Time) (pause time.Duration) {
	if now.Sub(f.begun) >= firstGap {
		f.begun, f.repeats = now, 0
	}
	if f.repeats++; f.repeats < maxRepeats {
		return 0
	}
	return f.begun.Add(firstGap).Sub(now)
}
