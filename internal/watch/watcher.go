package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Watcher watches directories of rings. Its methods are safe for concurrent
// use.
type Watcher struct {
	cfg           Config
	shape         *tally.Shape
	drainInterval time.Duration

	rings   atomic.Pointer[[]*Agent] // the values of agents, for the drain loop
	looking sync.Mutex               // held by a look over all rings, and to change which ring an agent has
	left    []*ringbuf.Reader        // rings that no agent has any more, to be closed; guarded by looking
	wanted  chan string              // paths to look at now
	scanner
	saver
	news news

	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// New checks the configuration. Nothing is opened before [Watcher.Start].
func New(cfg Config) (*Watcher, error) {
	cfg, errConfig := cfg.withDefaults()
	shape, errShape := tally.NewShape(cfg.Tally)
	if err := errors.Join(errConfig, errShape); err != nil {
		return nil, err
	}
	w := &Watcher{
		cfg:           cfg,
		shape:         shape,
		drainInterval: max(cfg.RunInterval/2, minDrainInterval),
		wanted:        make(chan string, maxWanted),
		saver:         saver{asked: make(chan struct{}, 1)},
	}
	w.scanner.init()
	w.news.init()
	w.rings.Store(new([]*Agent))
	return w, nil
}

// maxWanted bounds how many paths wait to be looked at. What doesn't fit is
// found by the next scan.
const maxWanted = 1024

// Start looks through the directories and begins to drain what it finds there.
// Nothing that is wrong with a directory or a ring is an error: it is
// reported, and tried again. With a store, which may be nil, the totals go on
// from where they stood when the last process that used it ended.
func (w *Watcher) Start(store Store) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	if w.cfg.Mode == ringbuf.Consume {
		w.store = store // an observer leaves no position that could be resumed
	}
	notify := w.openNotifier()
	w.scan(notify)
	w.loops.Go(func() { w.drainLoop(ctx) })
	w.loops.Go(func() { w.scanLoop(ctx, notify) })
	if w.store != nil {
		w.sweepStore(ctx)
		w.loops.Go(func() { w.saveLoop(ctx) })
	}
}

// Stop ends the loops. The rings stay open, so that what has come since can
// be had by a last [Watcher.Drain]. It is safe to call twice, and before Start.
func (w *Watcher) Stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.loops.Wait()
}

// Close stops the watcher and gives up the rings.
func (w *Watcher) Close() {
	w.Stop()
	for _, a := range *w.rings.Load() {
		a.mu.Lock()
		w.detach(a)
		a.mu.Unlock()
	}
	w.closeLeft()
	w.flushAll()
}

// Agents calls fn with each agent that is to be reported, by path. The agent
// stands still meanwhile; nothing of the view may be kept.
func (w *Watcher) Agents(fn func(View)) {
	for _, a := range *w.rings.Load() {
		a.mu.Lock()
		a.show(fn)
		a.mu.Unlock()
	}
}

// show calls fn with the agent, which is locked, if it is to be reported.
func (a *Agent) show(fn func(View)) {
	if a.idle {
		return
	}
	fn(View{Agent: a, Tally: a.tally, Layout: a.layout, Start: a.start})
	a.shown = a.lastEvent
}

// Delivered says that what the last call of [Watcher.Agents] handed out has
// arrived. An agent that is gone is kept until its last events have.
func (w *Watcher) Delivered() {
	for _, a := range *w.rings.Load() {
		a.mu.Lock()
		a.delivered = a.shown
		a.mu.Unlock()
	}
}

// enter adds a new agent to the list that the drain loop goes through, which
// is sorted by path. The list itself never changes; there is a new one.
func (w *Watcher) enter(a *Agent) {
	list := *w.rings.Load()
	at, _ := slices.BinarySearchFunc(list, a.Path, byPath)
	list = slices.Insert(slices.Clone(list), at, a)
	w.rings.Store(&list)
}

// withdraw is the reverse of enter.
func (w *Watcher) withdraw(a *Agent) {
	list := *w.rings.Load()
	if at, found := slices.BinarySearchFunc(list, a.Path, byPath); found {
		list = slices.Delete(slices.Clone(list), at, at+1)
		w.rings.Store(&list)
	}
}

func byPath(a *Agent, path string) int { return strings.Compare(a.Path, path) }

// look asks the scan loop to look at a path now.
func (w *Watcher) look(path string) {
	select {
	case w.wanted <- path:
	default:
	}
}
