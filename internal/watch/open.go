package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// How long to wait before a file that couldn't be opened is tried again. One
// that is no ring is tried again only when it changes.
const (
	firstRetryStarting = 5 * time.Millisecond // an agent needs microseconds to make its ring
	firstRetry         = time.Second
	maxRetry           = 30 * time.Second
	// An agent that isn't ready after so long has most likely failed.
	startingPatience = 10 * time.Second
	// An agent that starts anew sets its file's size and then rewrites the
	// header, within microseconds as a rule. Until then the header is that of
	// the ring before: it contradicts the size, or, which is worse, fits it by
	// chance. So the file gets some time to settle; more than the clock of a
	// file system takes to tick.
	settling = 20 * time.Millisecond
	// A header that contradicts its file for longer is to be reported.
	settlingPatience = time.Second
)

// refusal is a file that couldn't be opened.
type refusal struct {
	place
	info  ringbuf.FileInfo // as it was then; zero if unknown
	cause string           // what was reported
	since time.Time
	tried time.Time
	wait  time.Duration
	inert bool // only a change of the file can help
}

// tryOpen opens a ring, for an agent that is known (a) or a new one.
func (w *Watcher) tryOpen(f *ringbuf.Folder, p place, a *Agent, info ringbuf.FileInfo) {
	now := w.cfg.Now()
	if holder := w.holder(info.ID); holder != nil && holder != a {
		w.otherName(p, holder)
		return
	}
	if r := w.refused[p.path]; r != nil && !w.worthTrying(r, info, now) {
		return
	}
	if a == nil && len(w.agents) >= w.cfg.MaxRings {
		w.limitReached()
		return
	}
	if a != nil {
		w.leave(a, info)
		if w.postpone(p, info, now) {
			return
		}
	}
	w.closeLeft() // or its lock would keep the ring from being opened
	reader, err := w.openReader(f, p.path)
	if err != nil {
		w.refuse(p, info, err)
		return
	}
	w.forget(p.path)
	if a == nil {
		a = newAgent(p, &w.cfg, w.shape, now)
		w.share(a) // before its checkpoint is looked for, so that nobody removes that
		w.resume(a, reader)
		defer w.enter(a)
	}
	a.mu.Lock()
	w.attach(a, reader, now)
	unsaid := a.unsaid
	text := fmt.Sprintf("ring opened (layout %v, %d slots)", a.layout, reader.Capacity())
	a.mu.Unlock()
	w.hold(a, reader.ID())
	if !unsaid {
		w.note(Notice{Kind: RingOpened, Level: slog.LevelInfo, Path: a.Path, Text: text})
	}
}

func (w *Watcher) openReader(f *ringbuf.Folder, path string) (*ringbuf.Reader, error) {
	return ringbuf.OpenReader(path, w.cfg.Mode, ringbuf.In(f), ringbuf.OwnedBy(w.cfg.AllowedUIDs...))
}

// leave takes leave of an agent's ring before another is opened: it takes what
// is in it, unless the file is the same and has shrunk.
func (w *Watcher) leave(a *Agent, info ringbuf.FileInfo) {
	r := a.ring()
	if r != nil && r.ID() != info.ID {
		w.drainOut(a, w.cfg.Now())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reader == nil {
		return
	}
	if r.ID() == info.ID {
		w.interrupted(a, ringbuf.ErrShrunk)
		return
	}
	// Not by this name, but by another it may be opened again: what was counted
	// isn't to be counted twice. If that fails it isn't this reader's any more.
	_ = a.reader.Commit()
	w.lose(a)
	a.tally.Restarted(false) // the old ring was drained to its end
	w.noteOf(a, Notice{Kind: RingReplaced, Level: slog.LevelInfo, Text: "another file has taken the ring's name; its agent started anew"})
}

// drainOut takes all that is in an agent's ring, for which there is no next
// time: several passes, but no more than the largest ring takes, as somebody may
// write on.
func (w *Watcher) drainOut(a *Agent, now time.Time) {
	more := true
	for taken := 0; more && taken < ringbuf.MaxCapacity; taken += maxPass {
		more = w.drainPart(a, now)
	}
}

// drainPart drains an agent's ring, and says whether that took anything. Each
// pass locks the agent anew, so that nobody waits for all of them.
func (w *Watcher) drainPart(a *Agent, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reader
	if r == nil {
		return false
	}
	from := r.Position()
	w.drain(a, now)
	return a.reader == r && r.Position() != from
}

// share lets others know of an agent.
func (w *Watcher) share(a *Agent) {
	w.sharing.Lock()
	defer w.sharing.Unlock()
	w.agents[a.Path] = a
	w.relist.Store(true)
}

// postpone puts off opening a file anew that has just changed. It doesn't for
// ever: somebody may touch the file all the time.
func (w *Watcher) postpone(p place, info ringbuf.FileInfo, now time.Time) bool {
	r := w.refusal(p, now)
	if !changedWithin(settling, info, now) || now.Sub(r.since) >= settlingPatience {
		return false
	}
	r.info, r.tried, r.wait, r.inert = ringbuf.FileInfo{}, now, settling, false
	w.schedule(r)
	return true
}

func changedWithin(d time.Duration, info ringbuf.FileInfo, now time.Time) bool {
	age := now.Sub(info.ModTime)
	return age >= 0 && age < d
}

// worthTrying says whether a file that was refused may be a ring by now. A log
// file that is written to all day is looked at less and less.
func (w *Watcher) worthTrying(r *refusal, info ringbuf.FileInfo, now time.Time) bool {
	if r.info.Same(info) {
		return !r.inert && r.isDue(now)
	}
	if r.inert && now.Before(r.tried.Add(r.wait)) {
		w.schedule(r)
		return false
	}
	return true
}

// isDue says whether the wait is over, or nearly, if it is a long one: files that
// were refused one after the other are tried together then, and stay together,
// so that what is said of them is one notice.
func (r *refusal) isDue(now time.Time) bool {
	wait := r.wait
	if wait >= firstRetry {
		wait -= wait / 8
	}
	return !now.Before(r.tried.Add(wait))
}

// refuse notes that a file can't be opened, and when to try again.
func (w *Watcher) refuse(p place, info ringbuf.FileInfo, err error) {
	if absent(err) {
		return // it went while it was looked at
	}
	now := w.cfg.Now()
	r := w.refusal(p, now)
	cause := err.Error()
	r.info, r.tried, r.inert = info, now, false
	switch {
	case errors.Is(err, ringbuf.ErrNotReady):
		r.wait = later(r.wait, firstRetryStarting)
		if now.Sub(r.since) < startingPatience {
			cause = r.cause
		}
	case errors.Is(err, ringbuf.ErrInvalid) && changedWithin(settlingPatience, info, now):
		r.wait = later(r.wait, firstRetryStarting)
		if w.agents[p.path] != nil {
			cause = r.cause
		}
	case isInert(err):
		r.wait = later(r.wait, firstRetry)
		r.inert = true
	default:
		r.wait = later(r.wait, firstRetry)
	}
	delete(w.due, p.path)
	if !r.inert {
		w.schedule(r)
	}
	w.setCause(r, cause)
	if cause != r.cause && w.mayTell(w.agents[p.path], RingRefused) {
		r.cause = cause
		w.noteRefused(p, err)
	}
}

func (w *Watcher) noteRefused(p place, err error) {
	n := Notice{Kind: RingRefused, Level: slog.LevelWarn, Path: p.path, Err: err, Text: "ring can't be opened"}
	if isInert(err) {
		n.Kind, n.Level = NotRings, slog.LevelDebug
		n.Text = "file isn't a ring; exclude it, or give agents a directory of their own"
	}
	w.note(n)
}

// limitReached reports, once, that there are more rings than allowed.
func (w *Watcher) limitReached() {
	if w.full {
		return
	}
	w.full = true
	w.report(Notice{
		Kind: RingLimit, Level: slog.LevelError,
		Text: fmt.Sprintf("there are more than %d rings; the others are not read: raise max_rings, or name fewer in include", w.cfg.MaxRings),
	})
}

// refusal is what is known of a file that can't be opened.
func (w *Watcher) refusal(p place, now time.Time) *refusal {
	r := w.refused[p.path]
	if r == nil {
		r = &refusal{place: p, since: now}
		w.refused[p.path] = r
	}
	return r
}

// schedule has a file tried again in time.
func (w *Watcher) schedule(r *refusal) {
	w.due[r.path] = r
	w.wake(r.tried.Add(r.wait))
}

// later is the next step of a back-off.
func later(wait, first time.Duration) time.Duration { return min(max(2*wait, first), maxRetry) }

// setCause lets others know why a file can't be opened, if it should be a ring.
func (w *Watcher) setCause(r *refusal, cause string) {
	w.sharing.Lock()
	defer w.sharing.Unlock()
	if r.inert || cause == "" {
		delete(w.causes, r.path)
	} else {
		w.causes[r.path] = cause
	}
}

// forget drops what is known of a file that was refused.
func (w *Watcher) forget(path string) {
	if w.refused[path] == nil {
		return
	}
	w.sharing.Lock()
	delete(w.causes, path)
	w.sharing.Unlock()
	delete(w.refused, path)
	delete(w.due, path)
}
