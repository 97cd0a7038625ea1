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
)

// agentKey is where an agent's checkpoint is stored, and indexKey the list of
// those keys: a store can't be asked what it holds.
func agentKey(path string) string { return "agent:" + path }

const (
	indexKey       = "agents"
	indexSeparator = "\x00" // the one byte that no path has
)

// indexOps stores the list of agents where it has changed, and removes the
// checkpoints of those that were retired, of whom it returns the number. Most
// saves find it as it was.
func (w *Watcher) indexOps() (ops []Op, retired int) {
	if !w.relist.Swap(false) {
		return nil, 0
	}
	w.sharing.Lock()
	defer w.sharing.Unlock()
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
	return append(ops, Op{Key: indexKey, Value: []byte(strings.Join(paths, indexSeparator))}), len(w.garbage)
}

// removed says that the checkpoints of the first n that were retired are gone.
func (w *Watcher) removed(n int) {
	if n > 0 {
		w.sharing.Lock()
		defer w.sharing.Unlock()
		w.garbage = slices.Delete(w.garbage, 0, n)
	}
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
		w.relist.Store(true)
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
