package watch

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// inquiry is the question whether an agent is gone.
type inquiry struct {
	*Agent

	now    time.Time
	since  time.Time         // the agent's last event, when the question came up
	folder *ringbuf.Folder   // of the ring's file; nil where it can't be opened
	file   *ringbuf.FileInfo // as it was then; nil where there is none
	lent   *ringbuf.Reader   // the ring that is asked about; nil where there is none
}

// retireIfStale gives up the ring of an agent that is gone. An agent that is
// merely idle keeps its ring and is reported on: it may begin to write faster
// than a scan would find out.
func (w *Watcher) retireIfStale(a *Agent) {
	q := inquiry{Agent: a, now: w.cfg.Now()}
	if !w.stale(&q) {
		return
	}
	q.lookUp()
	if q.folder != nil {
		defer q.folder.Close()
	}
	if !w.letGo(&q) {
		return
	}
	alive, known := w.alive(&q)
	if w.concluded(&q, alive, known) {
		w.retire(&q)
	}
}

// stale says whether an agent may be gone.
func (w *Watcher) stale(q *inquiry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.since = q.lastEvent
	if q.now.Sub(q.lastEvent) < w.cfg.StaleAfter || q.idle && !q.removed {
		return false
	}
	if q.delivered.Before(q.lastEvent) {
		return false // a backend may be down for longer than that
	}
	if q.reader != nil && q.reader.Uncommitted() > 0 {
		// It would be read again. A store that fails for so long keeps nobody.
		return w.failed.Load() && q.commitUnsaved(q.now) == nil
	}
	return true
}

// lookUp finds the file as it is now. What an agent that starts anew makes of
// it from here on is a change, which is looked at.
func (q *inquiry) lookUp() {
	f, err := q.place().folder()
	if err != nil {
		return
	}
	q.folder = f
	if info, err := f.Lstat(q.place().base()); err == nil {
		q.file = &info
	}
}

// letGo says whether the question can be asked, and takes the ring from the
// agent for it. This process's own hold on a ring counts for the kernel, so that
// a consumer lets it go until the answer is there: nobody misses an agent that
// wrote nothing for so long. Without its folder it couldn't be had back.
func (w *Watcher) letGo(q *inquiry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.removed || q.reader == nil:
		return true // nothing is left to ask about
	case q.folder == nil || q.reader.Uncommitted() > 0:
		return false
	}
	q.lent = q.reader
	if w.cfg.Mode == ringbuf.Consume {
		w.detach(q.Agent)
		q.asked = true
	}
	return true
}

// alive says whether an agent still has its ring open, and whether that is
// known. The agent isn't locked: its directory may hang.
func (w *Watcher) alive(q *inquiry) (alive, known bool) {
	if q.lent == nil {
		return false, true
	}
	w.closeLeft()
	unattended, err := ringbuf.Unattended(q.Path, ringbuf.In(q.folder))
	if w.cfg.Mode == ringbuf.Consume {
		w.takeBack(q)
	}
	return err == nil && !unattended, err == nil
}

// takeBack opens a ring again that was let go. Where that fails, or the file is
// another by now, the next scan tries again and reports.
func (w *Watcher) takeBack(q *inquiry) {
	r, err := w.openReader(q.folder, q.Path)
	if err != nil {
		return
	}
	if r.ID() != q.lent.ID() {
		_ = r.Close() // nothing was read
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	w.give(q.Agent, r)
}

// concluded says whether an agent is gone, which then has no ring any more. It
// drains the ring once more: the agent may have written after the last drain
// and gone before the question. The drain loop may have done so already, or have
// found that another agent has started on the ring.
func (w *Watcher) concluded(q *inquiry, alive, known bool) bool {
	a := q.Agent
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = false
	if known && !alive && a.reader != nil {
		w.drain(a, q.now)
	}
	wrote, lost := a.lastEvent.After(q.since), q.lent != nil && a.reader == nil
	switch {
	case wrote || lost:
		return false
	case alive:
		a.lastEvent = q.now // ask again after as long
		return false
	case !known:
		a.idle = true
		return false
	}
	w.detach(a)
	return true
}

// retire forgets an agent. The file is looked at again when it changes, as an
// agent that starts anew on it does at once.
func (w *Watcher) retire(q *inquiry) {
	a := q.Agent
	w.closeLeft()
	w.letFile(a)
	w.sharing.Lock()
	delete(w.agents, a.Path)
	if w.store != nil {
		w.garbage = append(w.garbage, a.Path)
		w.relist.Store(true)
	}
	w.sharing.Unlock()
	w.withdraw(a)
	if w.store != nil {
		w.askSave()
	}
	w.full = false
	if q.file != nil && w.refused[a.Path] == nil {
		w.refused[a.Path] = &refusal{place: a.place(), info: *q.file, since: q.now, inert: true}
	}
	w.note(Notice{
		Kind: RingRetired, Level: slog.LevelInfo, Path: a.Path,
		Text: fmt.Sprintf("ring closed, as its agent is gone and wrote nothing for %v; the file is left", w.cfg.StaleAfter),
	})
}
