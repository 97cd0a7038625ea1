package watch

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// saveEvery is how long events stay uncommitted in a ring that fills slowly.
const saveEvery = time.Second

// saver stores checkpoints beside the drain loop, which never waits for it.
type saver struct {
	store Store // nil: what was read is committed at once

	asked   chan struct{} // one place: somebody wants a save
	garbage []string      // paths of agents that were retired; guarded by sharing
	absent  []string      // paths of stored agents whose ring isn't there; guarded by sharing

	saving sync.Mutex // held during a save; guards what follows
	told   bool       // that the store fails
	index  string     // as it is stored

	saved   atomic.Int64 // when the last save was made, in Unix nanoseconds
	busy    atomic.Bool  // one is under way
	drained atomic.Int64 // when the last drain was, in Unix nanoseconds
	waited  atomic.Int64 // nanoseconds that drains have seen pass since the save began
	failed  atomic.Bool  // the newest save
	needed  atomic.Bool  // a drain found a reason to save
}

// agentKey is where an agent's checkpoint is stored, and indexKey the list of
// those keys: a store can't be asked what it holds.
func agentKey(path string) string { return "agent:" + path }

const (
	indexKey       = "agents"
	indexSeparator = "\x00" // the one byte that no path has
)

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
	w.busy.Store(true) // whatever it waits for, rings fill meanwhile
	defer w.busy.Store(false)
	ops, positions := w.checkpoints(now, fn)
	ops = append(ops, w.indexOps()...)
	if len(ops) == 0 {
		return
	}
	err := w.store.Apply(ctx, ops)
	w.failed.Store(err != nil)
	if err != nil {
		w.index = "" // to be stored again
		for _, p := range positions {
			p.agent.setDirty()
		}
		w.saveFailed(err)
		return
	}
	w.told = false
	for _, p := range positions {
		w.commit(p)
	}
}

// checkpoints makes the checkpoints of the agents that have changed, and calls
// fn, unless it is nil, with each agent that is to be reported.
func (w *Watcher) checkpoints(now time.Time, fn func(View)) (ops []Op, positions []unsaved) {
	for _, a := range *w.rings.Load() {
		a.mu.Lock()
		if a.dirty || a.reader != nil && a.reader.Uncommitted() > 0 {
			value, to, err := encode(a, now)
			if err != nil { // the ring is gone from under the reader
				w.interrupted(a, err)
				value, to, err = encode(a, now)
			}
			if err == nil {
				ops = append(ops, Op{Key: agentKey(a.Path), Value: value})
				positions = append(positions, unsaved{agent: a, reader: a.reader, to: to, turn: a.turn})
				a.dirty = false
			}
		}
		if fn != nil {
			a.show(fn)
		}
		a.mu.Unlock()
	}
	return ops, positions
}

// encode is the checkpoint of an agent, which is locked, and the position that
// it reaches.
func encode(a *Agent, now time.Time) (value []byte, to uint64, err error) {
	c, err := newCheckpoint(a, now)
	if err == nil {
		value, err = c.marshal()
	}
	return value, c.To, err
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
	if err := a.reader.CommitTo(p.to); err != nil {
		w.interrupted(a, err)
	}
}

func (a *Agent) setDirty() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dirty = true
}

// settle decides what becomes of the events that a drain has read: without a
// store they are committed, with one they wait for a checkpoint. The agent is
// locked.
func (w *Watcher) settle(a *Agent, now time.Time) error {
	if w.store == nil {
		return a.reader.Commit()
	}
	held, capacity := a.reader.Uncommitted(), a.reader.Capacity()
	if held >= capacity/4 || held > 0 && since(w.saved.Load(), now) >= saveEvery {
		w.needed.Store(true)
	}
	switch {
	case held < capacity/4:
		return nil
	case w.failed.Load():
	case w.storeSlow() && capacity-1-held < 2*a.burst:
		w.saveSlow(a)
	default:
		return nil
	}
	// To lose events is worse than to count them without a net.
	a.turn++
	a.dirty = true
	return a.reader.Commit()
}

// storeSlow says whether a save takes longer than a drain may.
func (w *Watcher) storeSlow() bool {
	return w.busy.Load() && time.Duration(w.waited.Load()) > max(w.drainInterval, leastSlow)
}

// leastSlow is how long a save may take however short the drain interval is: on
// a busy machine any few lines can take so long.
const leastSlow = DefaultRunInterval / 2

// tick tells the saver that a drain begins. A time in which nothing of this
// process ran, and no save either, counts as one drain interval.
func (w *Watcher) tick(now time.Time) {
	passed := since(w.drained.Swap(now.UnixNano()), now)
	w.waited.Add(int64(min(max(passed, 0), w.drainInterval)))
}

// note keeps in mind how many events come at once. It forgets a large burst
// after some small ones: after a pause there are several in one.
func (a *Agent) note(events int) {
	if events > 0 {
		a.burst = max(events, a.burst-a.burst/8)
	}
}

// since is the time from nanoseconds of the epoch until now.
func since(nanos int64, now time.Time) time.Duration { return time.Duration(now.UnixNano() - nanos) }

// saveSlow reports, once, that an agent's ring couldn't wait for its checkpoint.
func (w *Watcher) saveSlow(a *Agent) {
	if a.toldSlow {
		return
	}
	a.toldSlow = true
	w.report(Notice{
		Kind: StoreSlow, Level: slog.LevelWarn, Path: a.Path,
		Text: "checkpoints take longer to store than this ring has room for, so that events were committed without one: " +
			"a crash right then would lose them; set fsync: false, give the storage a faster disk, or the agent a larger NIXL_TELEMETRY_BUFFER_SIZE",
	})
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

// indexOps stores the list of agents where it has changed, and removes the
// checkpoints of those that were retired.
func (w *Watcher) indexOps() (ops []Op) {
	w.sharing.Lock()
	paths := slices.Collect(maps.Keys(w.agents))
	for _, path := range w.absent {
		if w.agents[path] == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range w.garbage {
		if w.agents[path] == nil {
			ops = append(ops, Op{Key: agentKey(path)})
		}
	}
	w.garbage = nil
	w.sharing.Unlock()
	if index := strings.Join(paths, indexSeparator); index != w.index {
		w.index = index
		ops = append(ops, Op{Key: indexKey, Value: []byte(index)})
	}
	return ops
}

// sweepStore removes the checkpoints of agents whose ring has been gone for
// long. It is called once, at the start.
func (w *Watcher) sweepStore(ctx context.Context) {
	stored, err := w.store.Get(ctx, indexKey)
	if err != nil {
		w.report(Notice{Kind: StoreFailed, Level: slog.LevelWarn, Err: err, Text: "list of checkpoints can't be read; old ones stay in the store"})
		return
	}
	for path := range strings.SplitSeq(string(stored), indexSeparator) {
		if path == "" || w.knows(path) {
			continue
		}
		list := &w.absent
		if w.expired(ctx, path) {
			list = &w.garbage
		}
		w.sharing.Lock()
		*list = append(*list, path)
		w.sharing.Unlock()
	}
}

func (w *Watcher) knows(path string) bool {
	w.sharing.Lock()
	defer w.sharing.Unlock()
	return w.agents[path] != nil
}

// expired says whether a checkpoint is of an agent that is gone for good.
func (w *Watcher) expired(ctx context.Context, path string) bool {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	stored, err := w.store.Get(ctx, agentKey(path))
	if err != nil {
		return false
	}
	c, err := parseCheckpoint(stored)
	return err != nil || since(c.Saved, w.cfg.Now()) >= w.cfg.StaleAfter
}
