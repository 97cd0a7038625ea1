package watch

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// retireIfStale gives up the ring of an agent that is gone. An agent that is
// merely idle keeps its ring and is reported on: it may begin to write faster
// than a scan would find out.
func (w *Watcher) retireIfStale(a *Agent) {
	now := w.cfg.Now()
	asked, stale := w.letGo(a, now)
	if !stale {
		return
	}
	alive, known := w.alive(a, asked)
	if w.concluded(a, alive, known, now) {
		w.retire(a)
	}
}

// letGo says whether an agent may be gone, and which ring of its to ask about.
// This process's own hold on a ring counts for the kernel, so that a consumer
// takes it from the agent until the answer is there: nobody misses an agent
// that wrote nothing for so long.
func (w *Watcher) letGo(a *Agent, now time.Time) (asked *ringbuf.Reader, stale bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.lastEvent) < w.cfg.StaleAfter || a.idle && !a.removed {
		return nil, false
	}
	if a.delivered.Before(a.lastEvent) {
		return nil, false // a backend may be down for longer than that
	}
	if a.reader != nil && a.reader.Uncommitted() > 0 {
		// It would be read again. A store that fails for so long keeps nobody.
		if !w.failed.Load() || a.commitUnsaved(now) != nil {
			return nil, false
		}
	}
	if a.removed {
		return nil, true // nothing is left to ask about
	}
	asked = a.reader
	if asked != nil && w.cfg.Mode == ringbuf.Consume {
		w.detach(a)
		a.asked = true
	}
	return asked, true
}

// alive says whether an agent still has its ring open, and whether that is
// known. The agent isn't locked: its directory may hang.
func (w *Watcher) alive(a *Agent, asked *ringbuf.Reader) (alive, known bool) {
	if asked == nil {
		return false, true
	}
	f, err := a.place().folder()
	if err == nil {
		defer f.Close()
		w.closeLeft()
		var unattended bool
		unattended, err = ringbuf.Unattended(a.Path, ringbuf.In(f))
		alive, known = err == nil && !unattended, err == nil
	}
	if w.cfg.Mode == ringbuf.Consume {
		w.takeBack(f, a, asked)
	}
	return alive, known
}

// takeBack opens a ring again that was let go. Where that fails, or the file is
// another by now, the next scan tries again and reports.
func (w *Watcher) takeBack(f *ringbuf.Folder, a *Agent, asked *ringbuf.Reader) {
	if f == nil {
		return
	}
	r, err := w.openReader(f, a.Path)
	if err != nil {
		return
	}
	if r.ID() != asked.ID() {
		_ = r.Close() // nothing was read
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.give(a, r)
}

// concluded says whether an agent is gone, which then has no ring any more. It
// drains the ring once more: the agent may have written after the last drain
// and gone before the question.
func (w *Watcher) concluded(a *Agent, alive, known bool, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.lastEvent
	a.asked = false
	switch {
	case alive:
		a.lastEvent = now // ask again after as long
		return false
	case !known:
		a.idle = true
		return false
	}
	if a.reader != nil {
		w.drain(a, now)
	}
	if a.lastEvent.After(before) {
		return false
	}
	w.detach(a)
	return true
}

// retire forgets an agent. The file is looked at again when it changes, as an
// agent that starts anew on it does at once.
func (w *Watcher) retire(a *Agent) {
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
	w.leaveAlone(a.place())
	w.note(Notice{
		Kind: RingRetired, Level: slog.LevelInfo, Path: a.Path,
		Text: fmt.Sprintf("ring closed, as its agent is gone and wrote nothing for %v; the file is left", w.cfg.StaleAfter),
	})
}

// leaveAlone has a file opened again only when it has changed.
func (w *Watcher) leaveAlone(p place) {
	f, err := p.folder()
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Lstat(p.base()); err == nil && w.refused[p.path] == nil {
		w.refused[p.path] = &refusal{place: p, info: info, since: w.cfg.Now(), inert: true}
	}
}
