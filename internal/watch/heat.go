package watch

import (
	"time"
)

// Who writes to a file all the time, such as a log in /tmp, makes an event of
// the file system with each write. To look at the file each time would cost up
// to a core. So a file is looked at when something happens to it after a while
// in which nothing did, and then less and less often for as long as it goes on.
const (
	// firstGap is between the first two looks: an agent that starts anew sets its
	// file's size, and settles within this time. A file that was made, renamed or
	// removed is never looked at later than that.
	firstGap = settling
	// agentGap bounds how late a change of an open ring's file is seen. It may be
	// that its agent started anew.
	agentGap = time.Second
	// maxHot bounds for how many files this is kept in mind. The others wait for
	// the next look through the directories.
	maxHot = maxEntries
	// overflowPause is how long after a look through the directories the next
	// one comes early, as events were lost.
	overflowPause = rescanEvery / 4
	// maxVain bounds how many events are taken within firstGap that tell nothing
	// new, beyond the few that an agent makes as it starts. To take one costs more
	// than to pass over it. The rest wait in the kernel, which makes one of several
	// that are the same.
	maxVain = 64
	fewVain = 8
)

// heat is how often a file is looked at because of what happens to it.
type heat struct {
	place
	last    time.Time     // when it was looked at
	gap     time.Duration // until it may be again
	changed bool          // since
	vain    int           // events since
	named   bool          // the name has another file now, or none
}

// due is when a file that has changed is to be looked at.
func (h *heat) due() time.Time {
	if h.named {
		return h.last.Add(min(h.gap, firstGap))
	}
	return h.last.Add(h.gap)
}

// calm says whether nothing has happened to the file for a while.
func (h *heat) calm(now time.Time) bool { return now.Sub(h.last) > 2*h.gap }

// looked notes that the file is looked at now.
func (h *heat) looked(now time.Time, limit time.Duration) {
	if h.calm(now) {
		h.gap = firstGap
	} else {
		h.gap = min(2*h.gap, limit)
	}
	h.last, h.changed, h.named, h.vain = now, false, false, 0
}

// changed looks at a path to which something happened, now or soon. named says
// that the path may have another file now. The result says whether that told
// something new.
func (w *Watcher) changed(path string, named bool) bool {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	h := w.hot[path]
	if h == nil {
		p, ok := w.placeOf(path)
		if !ok || len(w.hot) >= maxHot {
			return false
		}
		h = &heat{place: p}
		w.hot[path] = h
	}
	h.changed, h.named = true, h.named || named
	now := w.cfg.Now()
	if at := h.due(); now.Before(at) {
		w.wake(at)
		h.vain++
		return h.vain <= fewVain
	}
	defer w.flush()
	defer w.closeLeft()
	w.lookHot(h, now)
	return true
}

// flood counts the events that tell nothing new.
type flood struct {
	begun time.Time
	vain  int
}

// more counts one more, and says for how long no event is to be taken.
func (f *flood) more(now time.Time) (pause time.Duration) {
	if now.Sub(f.begun) >= firstGap {
		f.begun, f.vain = now, 0
	}
	if f.vain++; f.vain < maxVain {
		return 0
	}
	return f.begun.Add(firstGap).Sub(now)
}

func (w *Watcher) lookHot(h *heat, now time.Time) {
	limit := maxRetry
	if w.agents[h.path] != nil {
		limit = agentGap
	}
	h.looked(now, limit)
	w.lookAtPlace(h.place)
}

// coolDown forgets the files to which nothing happens any more.
func (w *Watcher) coolDown() {
	now := w.cfg.Now()
	for path, h := range w.hot {
		if !h.changed && h.calm(now) {
			delete(w.hot, path)
		}
	}
}

// wake has retry called at a time, or before.
func (w *Watcher) wake(at time.Time) {
	if w.soonest.IsZero() || at.Before(w.soonest) {
		w.soonest = at
	}
}

// retry looks at what is due.
func (w *Watcher) retry() {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	defer w.flush()
	defer w.closeLeft()
	now := w.cfg.Now()
	for _, r := range w.due {
		if r.isDue(now) {
			w.visit(r.place)
		}
	}
	for _, h := range w.hot {
		if h.changed && !now.Before(h.due()) {
			w.lookHot(h, now)
		}
	}
	w.soonest = time.Time{}
	for _, r := range w.due {
		w.wake(r.tried.Add(r.wait))
	}
	for _, h := range w.hot {
		if h.changed {
			w.wake(h.due())
		}
	}
}

// untilRetry is the time until something is due.
func (w *Watcher) untilRetry() time.Duration {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	wait := maxRetry
	if !w.soonest.IsZero() {
		wait = min(wait, w.soonest.Sub(w.cfg.Now()))
	}
	return max(wait, minDrainInterval)
}

// untilRescan is the time until the directories are looked through because
// events were lost. Somebody may make more of them than can be kept all the
// time.
func (w *Watcher) untilRescan() time.Duration {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	return max(w.scanned.Add(overflowPause).Sub(w.cfg.Now()), 0)
}
