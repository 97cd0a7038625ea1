package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
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
	info  fs.FileInfo // as it was then; nil if unknown
	cause string      // what was reported
	since time.Time
	tried time.Time
	wait  time.Duration
	inert bool // only a change of the file can help
}

// tryOpen opens a ring, for an agent that is known (a) or a new one.
func (w *Watcher) tryOpen(p place, a *Agent, info fs.FileInfo) {
	now := w.cfg.Now()
	if r := w.refused[p.path]; r != nil && !w.worthTrying(r, info, now) {
		return
	}
	if a == nil && len(w.agents) >= w.cfg.MaxRings {
		w.limitReached()
		return
	}
	if a != nil && (!w.leave(a, info) || w.postpone(p, info, now)) {
		return
	}
	reader, err := w.openReader(p.path)
	if err != nil {
		w.refuse(p, info, err)
		return
	}
	w.forget(p.path)
	if a == nil {
		a = newAgent(p, &w.cfg, w.shape, now)
		w.resume(a, reader)
		w.agents[p.path] = a
		defer w.enter(a)
	}
	a.mu.Lock()
	w.attach(a, reader, now)
	text := fmt.Sprintf("ring opened (layout %v, %d slots)", a.layout, reader.Capacity())
	a.mu.Unlock()
	w.note(Notice{Kind: RingOpened, Level: slog.LevelInfo, Path: a.Path, Text: text})
}

func (w *Watcher) openReader(path string) (*ringbuf.Reader, error) {
	return ringbuf.OpenReader(path, w.cfg.Mode, ringbuf.OwnedBy(w.cfg.AllowedUIDs...))
}

// leave takes leave of an agent's ring before another is opened: it takes what
// is in it, unless the file is the same and has shrunk.
func (w *Watcher) leave(a *Agent, info fs.FileInfo) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reader == nil {
		return true
	}
	if a.reader.SameFile(info) {
		w.interrupted(a, ringbuf.ErrShrunk)
		return true
	}
	w.drain(a, w.cfg.Now())
	w.lose(a)
	a.tally.Restarted()
	w.note(Notice{Kind: RingReplaced, Level: slog.LevelInfo, Path: a.Path, Text: "another file has taken the ring's name; its agent started anew"})
	return true
}

// postpone puts off opening a file anew that has just changed. It doesn't for
// ever: somebody may touch the file all the time.
func (w *Watcher) postpone(p place, info fs.FileInfo, now time.Time) bool {
	r := w.refusal(p, now)
	if !changedWithin(settling, info, now) || now.Sub(r.since) >= settlingPatience {
		return false
	}
	r.info, r.tried, r.wait, r.inert = nil, now, settling, false
	w.due[p.path] = r
	return true
}

func changedWithin(d time.Duration, info fs.FileInfo, now time.Time) bool {
	age := now.Sub(info.ModTime())
	return age >= 0 && age < d
}

// worthTrying says whether a file that was refused may be a ring by now. A log
// file that is written to all day is looked at less and less.
func (w *Watcher) worthTrying(r *refusal, info fs.FileInfo, now time.Time) bool {
	if r.unchanged(info) {
		return !r.inert && r.isDue(now)
	}
	if r.inert && now.Before(r.tried.Add(r.wait)) {
		w.due[r.path] = r
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

// unchanged says whether a file looks as it did when it was refused.
func (r *refusal) unchanged(info fs.FileInfo) bool {
	return r.info != nil && os.SameFile(r.info, info) && r.info.Size() == info.Size() &&
		r.info.Mode() == info.Mode() && r.info.ModTime().Equal(info.ModTime())
}

// refuse notes that a file can't be opened, and when to try again.
func (w *Watcher) refuse(p place, info fs.FileInfo, err error) {
	if errors.Is(err, fs.ErrNotExist) {
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
	case errors.Is(err, ringbuf.ErrInvalid) && info != nil && changedWithin(settlingPatience, info, now):
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
		w.due[p.path] = r
	}
	if cause != r.cause {
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

// later is the next step of a back-off.
func later(wait, first time.Duration) time.Duration { return min(max(2*wait, first), maxRetry) }

// forget drops what is known of a file that was refused.
func (w *Watcher) forget(path string) {
	delete(w.refused, path)
	delete(w.due, path)
}

// retry tries what is due.
func (w *Watcher) retry() {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	defer w.flush()
	now := w.cfg.Now()
	for _, r := range w.due {
		if r.isDue(now) {
			w.consider(r.place)
		}
	}
}

// untilRetry is the time until something is due.
func (w *Watcher) untilRetry() time.Duration {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	wait := maxRetry
	now := w.cfg.Now()
	for _, r := range w.due {
		wait = min(wait, r.tried.Add(r.wait).Sub(now))
	}
	return max(wait, minDrainInterval)
}
