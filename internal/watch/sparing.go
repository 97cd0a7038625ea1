package watch

import "time"

// sayAgain is how often at most the same is said of an agent. Who can write to a
// ring can make it start anew, or break it, with every drain.
const sayAgain = time.Minute

// telling is when something was last said of an agent, and how often it could
// have been since.
type telling struct {
	last time.Time
	left int
}

// admit says whether a notice of a kind may be told of an agent, which is
// locked, and how many were left out before it.
func (a *Agent) admit(k Kind, now time.Time) (left int, ok bool) {
	t, told := a.tellings[k]
	if told && now.Sub(t.last) < sayAgain {
		t.left++
		a.tellings[k] = t
		return 0, false
	}
	if a.tellings == nil {
		a.tellings = make(map[Kind]telling)
	}
	a.tellings[k] = telling{last: now}
	return t.left, true
}

// reportOf reports something of an agent, which is locked, unless that was done
// of late.
func (w *Watcher) reportOf(a *Agent, n Notice) {
	if w.sparing(a, &n) {
		w.report(n)
	}
}

// noteOf is reportOf for what a look at files has found.
func (w *Watcher) noteOf(a *Agent, n Notice) {
	if w.sparing(a, &n) {
		w.note(n)
	}
}

// sparing completes a notice of an agent, and says whether it is to be told.
func (w *Watcher) sparing(a *Agent, n *Notice) bool {
	left, ok := a.admit(n.Kind, w.cfg.Now())
	a.unsaid = !ok
	n.Path, n.Again = a.Path, left
	return ok
}

// mayTell says whether something may be said of an agent that isn't locked, or
// of a file that is no agent's.
func (w *Watcher) mayTell(a *Agent, k Kind) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.admit(k, w.cfg.Now())
	return ok
}
