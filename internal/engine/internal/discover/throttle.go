// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Each write to a file causes a file system event. Checking a file on every event
// would take up to a core if a process writes all the time, such as to a log in
// /tmp. So the first change after a quiet period is checked at once, and further
// changes at growing intervals.
const (
	// firstGap is the time between the first two checks. An agent that restarts
	// sets its file's size and rewrites the header within this time. After a file was
	// created, renamed or removed, the next check is never later than that.
	firstGap = settleTime
	// agentGap is the maximum time between two checks of an open ring's file, because
	// its agent may have restarted.
	agentGap = time.Second
	// maxRepeats limits the redundant events that are handled within firstGap. The
	// first startRepeats events of a path aren't redundant, because an agent causes as
	// many when it starts. Leaving an event in the queue is cheaper than handling it:
	// the kernel merges equal ones.
	maxRepeats   = 64
	startRepeats = 8
)

// throttle limits how often a path that changes is checked.
type throttle struct {
	last     time.Time     // the last check
	gap      time.Duration // minimum time from last to the next check
	changed  bool          // since last
	replaced bool          // the file was created, renamed or removed since last
	repeats  int           // events since last
}

// next returns the time of the next check of a path that has changed.
func (t *throttle) next() time.Time {
	if t.replaced {
		return t.last.Add(min(t.gap, firstGap))
	}
	return t.last.Add(t.gap)
}

// isQuiet reports whether the path hasn't changed for some time.
func (t *throttle) isQuiet(now time.Time) bool { return now.Sub(t.last) > 2*t.gap }

// checked records a check. limit is the maximum gap.
func (t *throttle) checked(now time.Time, limit time.Duration) {
	gap := min(2*t.gap, limit)
	if t.isQuiet(now) {
		gap = firstGap
	}
	*t = throttle{last: now, gap: gap}
}

// due returns the time of the next check of a path; zero if the next walk is early
// enough.
func (r *record) due() (at time.Time) {
	if r.state == refused && r.wait < ProbeInterval {
		at = r.tried.Add(r.wait)
	}
	if r.changed && (at.IsZero() || r.next().Before(at)) {
		at = r.next()
	}
	return at
}

// change checks a path that has changed, or schedules the check. replaced must be
// set if the file was created, renamed or removed. The result is false for redundant
// events.
func (t *tracker) change(r *record, replaced bool) bool {
	r.changed, r.replaced = true, r.replaced || replaced
	if t.cfg.Now().Before(r.next()) {
		t.schedule(r)
		r.repeats++
		return r.repeats <= startRepeats
	}
	t.wake(r)
	return true
}

// wake checks a path that is due.
func (t *tracker) wake(r *record) {
	if now := t.cfg.Now(); r.changed && !now.Before(r.next()) {
		limit := maxRetry
		if r.ring != nil {
			limit = agentGap
		}
		r.checked(now, limit)
		if r.state == open {
			r.info = files.Info{} // the file has changed, even if its times haven't
		}
	}
	t.checkPath(r)
}

// schedule schedules the next check of a path.
func (t *tracker) schedule(r *record) {
	at := r.due()
	if at.IsZero() {
		return
	}
	t.scheduled[r.Path] = r
	if t.nextDue.IsZero() || at.Before(t.nextDue) {
		t.nextDue = at
	}
}

// wakeDue checks the paths that are due.
func (t *tracker) wakeDue() {
	now := t.cfg.Now()
	if t.nextDue.IsZero() || now.Before(t.nextDue) {
		return
	}
	waiting := t.scheduled
	t.scheduled, t.nextDue = make(map[string]*record), time.Time{}
	for _, r := range waiting {
		if t.ctx.Err() != nil {
			return
		}
		if at := r.due(); !at.IsZero() && !now.Before(at) {
			t.wake(r)
		}
		t.schedule(r)
	}
}

// untilDue returns the time until the next scheduled check.
func (t *tracker) untilDue() time.Duration {
	if t.nextDue.IsZero() {
		return maxRetry
	}
	return max(t.nextDue.Sub(t.cfg.Now()), time.Millisecond)
}

// eventLimiter counts redundant events.
type eventLimiter struct {
	began   time.Time
	repeats int
}

// add counts an event and returns how long to wait before handling the next one.
func (l *eventLimiter) add(now time.Time) (pause time.Duration) {
	if now.Sub(l.began) >= firstGap {
		l.began, l.repeats = now, 0
	}
	if l.repeats++; l.repeats < maxRepeats {
		return 0
	}
	return l.began.Add(firstGap).Sub(now)
}
