package watch

import (
	"fmt"
	"log/slog"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A running agent is known by the name that its ring had when it was found, and
// goes on under it when the file is renamed, or has two names. The agent itself
// is the same, and totals that moved to another name would be counted twice by
// whoever adds them up. Its next ring has the old name again.

// holder is the agent that has a file open as its ring, nil if there is none.
func (w *Watcher) holder(id ringbuf.FileID) *Agent {
	a := w.files[id]
	if a == nil {
		return nil
	}
	if r := a.ring(); r == nil || r.ID() != id {
		return nil // closed since, and the number may be another file's by now
	}
	return a
}

// hold notes which file an agent has open.
func (w *Watcher) hold(a *Agent, id ringbuf.FileID) {
	w.letFile(a)
	a.file, w.files[id] = id, a
}

// letFile is the reverse of hold.
func (w *Watcher) letFile(a *Agent) {
	if w.files[a.file] == a {
		delete(w.files, a.file)
	}
}

// otherName notes that a path is one more name of the ring of an agent, known
// by another, and says so once. An agent that had the path for its own ring
// has lost it.
func (w *Watcher) otherName(p place, holder *Agent) {
	if a := w.agents[p.path]; a != nil {
		w.vanished(a)
	}
	r := w.refusal(p, w.cfg.Now())
	text := fmt.Sprintf("this is the ring of %s under another name; it goes on to be read and reported under that one, "+
		"until its agent starts anew", holder.Path)
	if r.cause == text {
		return
	}
	*r = refusal{place: p, since: r.since} // tried again with each look
	delete(w.due, p.path)
	w.setCause(r, "")
	if !w.mayTell(holder, RingRefused) {
		return
	}
	r.cause = text
	w.report(Notice{Kind: RingRemoved, Level: slog.LevelInfo, Path: p.path, Text: text})
}
