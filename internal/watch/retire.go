package watch

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// retireIfStale gives up the ring of an agent that is gone. An agent that is
// merely idle keeps its ring and is reported on: it may begin to write faster
// than a scan would find out.
func (w *Watcher) retireIfStale(a *Agent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := w.cfg.Now()
	if a.reader != nil && a.reader.Uncommitted() > 0 {
		return // the store is in trouble; what isn't committed would be read again
	}
	if now.Sub(a.lastEvent) < w.cfg.StaleAfter || a.idle && !a.removed {
		return
	}
	if a.delivered.Before(a.lastEvent) {
		return // a backend may be down for longer than that
	}
	switch alive, known := w.alive(a); {
	case alive:
		a.lastEvent = now // ask again after as long
	case known && w.hadMore(a, now):
	case known:
		w.retire(a)
	default:
		a.idle = true
	}
}

// alive says whether an agent still has its ring open, and whether that is
// known. This process's own hold on the ring counts for the kernel, so that it
// is let go meanwhile.
func (w *Watcher) alive(a *Agent) (alive, known bool) {
	if a.reader == nil {
		return false, true
	}
	if a.removed {
		return false, true // nothing is left to ask about
	}
	if w.cfg.Mode == ringbuf.Consume {
		w.detach(a)
	}
	unattended, err := ringbuf.Unattended(a.Path)
	if w.cfg.Mode == ringbuf.Consume {
		// Where it fails, the next scan tries again and reports.
		if r, err := w.openReader(a.Path); err == nil {
			w.give(a, r)
		}
	}
	return err == nil && !unattended, err == nil
}

// hadMore drains an agent that is gone once more: it may have written after
// the last drain and gone before the question.
func (w *Watcher) hadMore(a *Agent, now time.Time) bool {
	if a.reader != nil {
		w.drain(a, now)
	}
	return a.lastEvent.Equal(now)
}

// retire closes the ring and forgets the agent. The file is looked at again
// when it changes, as an agent that starts anew on it does at once.
func (w *Watcher) retire(a *Agent) {
	w.detach(a)
	delete(w.agents, a.Path)
	w.withdraw(a)
	if w.store != nil {
		w.garbage = append(w.garbage, a.Path)
		w.askSave()
	}
	w.full = false
	if info, err := os.Lstat(a.Path); err == nil && w.refused[a.Path] == nil {
		w.refused[a.Path] = &refusal{
			place: place{dir: a.Dir, name: a.Name, path: a.Path}, info: info,
			since: w.cfg.Now(), inert: true,
		}
	}
	w.note(Notice{
		Kind: RingRetired, Level: slog.LevelInfo, Path: a.Path,
		Text: fmt.Sprintf("ring closed, as its agent is gone and wrote nothing for %v; the file is left", w.cfg.StaleAfter),
	})
}
