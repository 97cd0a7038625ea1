package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// saver stores checkpoints beside the drain loop, which never waits for it.
type saver struct {
	store Store // nil: what was read is committed at once

	asked   chan struct{} // one place: somebody wants a save
	garbage []string      // paths of agents that were retired; guarded by sharing
	absent  []string      // paths of stored agents whose ring isn't there; guarded by sharing
	relist  atomic.Bool   // the list of agents isn't what is stored

	saving sync.Mutex // held during a save; guards what follows
	told   bool       // that the store fails
	// Of the last one, for the next to begin with: the size of its checkpoints,
	// their number, and where they led to.
	size, stored int
	positions    []unsaved

	saved   atomic.Int64 // when the last save was made, in Unix nanoseconds
	busy    atomic.Bool  // one is under way
	drained atomic.Int64 // when the last drain was, in Unix nanoseconds
	waited  atomic.Int64 // nanoseconds that drains have seen pass since the save began
	failed  atomic.Bool  // the newest save
	needed  atomic.Bool  // a drain found a reason to save
}

// saveLoop saves when it is asked to, until ctx ends.
func (w *Watcher) saveLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asked:
			w.save(ctx)
		}
	}
}

// askSave asks for a save, unless one was asked for already.
func (w *Watcher) askSave() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// Collect drains all rings and calls fn with each agent that is to be
// reported, by path, as [Watcher.Agents] does. Where there is a store, what fn
// has seen is stored when Collect returns, and not an event less: whoever
// reports it then doesn't have to take it back after a crash.
func (w *Watcher) Collect(ctx context.Context, fn func(View)) {
	w.Drain()
	if w.store == nil {
		w.Agents(fn)
		return
	}
	w.saveAnd(ctx, fn)
}

// unsaved is a position that is to be committed once its checkpoint is stored.
type unsaved struct {
	agent  *Agent
	reader *ringbuf.Reader
	to     uint64
	turn   uint
}

// save stores a checkpoint of each agent that has changed, all at once, and
// commits their positions.
func (w *Watcher) save(ctx context.Context) { w.saveAnd(ctx, nil) }

// saveAnd is save that shows each agent as it is stored, unless fn is nil.
func (w *Watcher) saveAnd(ctx context.Context, fn func(View)) {
	w.saving.Lock()
	defer w.saving.Unlock()
	now := w.cfg.Now()
	w.saved.Store(now.UnixNano())
	w.waited.Store(0)
	w.drained.Store(now.UnixNano()) // what was before doesn't count
	w.busy.Store(true)              // whatever it waits for, rings fill meanwhile
	defer w.busy.Store(false)
	ops, positions := w.checkpoints(now, fn)
	indexed, retired := w.indexOps()
	ops = append(ops, indexed...)
	if len(ops) == 0 {
		return
	}
	err := w.store.Apply(ctx, ops)
	if err != nil {
		w.relist.Store(true)
		for _, p := range positions {
			p.agent.setDirty()
		}
		if ctx.Err() == nil { // else nobody waited for it to work
			w.failed.Store(true)
			w.saveFailed(err)
		}
		return
	}
	w.failed.Store(false)
	w.told = false
	w.removed(retired)
	for _, p := range positions {
		w.commit(p)
	}
}

// checkpoints makes the checkpoints of the agents that have changed, and calls
// fn, unless it is nil, with each agent that is to be reported.
func (w *Watcher) checkpoints(now time.Time, fn func(View)) (ops []Op, positions []unsaved) {
	// All of them are in one piece of memory, or some, where it has to grow. It
	// isn't used again, as nobody promises that a store copies what it is given.
	all := make([]byte, 0, w.size+w.size/4)
	ops, positions = make([]Op, 0, w.stored+w.stored/4), w.positions[:0]
	for _, a := range *w.rings.Load() {
		a.mu.Lock()
		if a.dirty || a.reader != nil && a.reader.Uncommitted() > 0 {
			with, to, err := appendCheckpoint(all, a, now)
			if err != nil { // the ring is gone from under the reader
				w.interrupted(a, err)
				with, to, err = appendCheckpoint(all, a, now)
			}
			if err == nil {
				ops = append(ops, Op{Key: a.key, Value: with[len(all):len(with):len(with)]})
				all = with
				positions = append(positions, unsaved{agent: a, reader: a.reader, to: to, turn: a.turn})
				a.dirty = false
			}
		}
		if fn != nil {
			a.show(fn)
		}
		a.mu.Unlock()
	}
	w.size, w.stored, w.positions = len(all), len(ops), positions
	return ops, positions
}

// commit moves a position whose checkpoint is stored, unless the ring is
// another by now.
func (w *Watcher) commit(p unsaved) {
	a := p.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reader == nil || a.reader != p.reader || a.turn != p.turn {
		return
	}
	a.relieved = w.cfg.Now()
	if err := a.reader.CommitTo(p.to); err != nil {
		w.interrupted(a, err)
	}
}

func (a *Agent) setDirty() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dirty = true
}

func (w *Watcher) saveFailed(err error) {
	if w.told {
		return
	}
	w.told = true
	w.report(Notice{
		Kind: StoreFailed, Level: slog.LevelError, Err: err,
		Text: "checkpoints can't be stored; events go on to be counted, but a crash may lose some of them or count them twice",
	})
}
