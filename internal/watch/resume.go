package watch

import (
	"context"
	"log/slog"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// resume gives a new agent the totals of its checkpoint, if there is one, and
// brings its ring to where they stand.
func (w *Watcher) resume(a *Agent, r *ringbuf.Reader) {
	if w.store == nil {
		a.tally.Opened(r.Committed() == 0)
		return
	}
	c, err := w.load(a)
	if err != nil {
		w.note(Notice{
			Kind: StoreFailed, Level: slog.LevelWarn, Path: a.Path, Err: err,
			Text: "checkpoint can't be used; the agent's totals start anew",
		})
	}
	if c == nil {
		a.tally.Opened(r.Committed() == 0)
		a.dirty = true // the time that its totals start at is worth keeping, too
		w.needed.Store(true)
		return
	}
	found, err := c.resume(r)
	if err != nil {
		w.note(Notice{Kind: RingBroken, Level: slog.LevelWarn, Path: a.Path, Err: err, Text: "ring changed while it was opened"})
		return // the next drain finds out what has become of it
	}
	switch found {
	case resumed, finished:
	case startedAnew:
		a.tally.Restarted(true)
		w.note(Notice{
			Kind: RingRestart, Level: slog.LevelInfo, Path: a.Path,
			Text: "agent started anew since the last checkpoint; events that it had not been relieved of by then are lost",
		})
	case readByOther:
		a.tally.ForeignRead()
		w.note(Notice{
			Kind: RingForeign, Level: slog.LevelWarn, Path: a.Path,
			Text: "events were taken from this ring since the last checkpoint and are missing from the totals: by somebody else, " +
				"or by this reader, if it said before it died that the ring couldn't wait for a checkpoint",
		})
	}
}

// load restores the agent's totals, and returns the checkpoint that they are
// from, nil if there is none.
func (w *Watcher) load(a *Agent) (*checkpoint, error) {
	stored, err := w.store.Get(context.Background(), a.key)
	if err != nil || stored == nil {
		return nil, err
	}
	c, err := parseCheckpoint(stored)
	if err != nil {
		return nil, err
	}
	// Totals that can't be restored don't make the position wrong. What a
	// process that ended in order has counted up to it was reported.
	return &c, c.restore(a, w.shape)
}
