// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Engine discovers and drains rings. Its methods are safe for concurrent use after
// Start.
type Engine struct {
	cfg      Config
	shape    *tally.Shape
	reporter *notice.Reporter
	loop     *drain.Loop         // nil before Start
	sources  []*discover.Watcher // directories, kubelet and processes

	refreshed atomic.Bool // by the first collection
}

// New checks the configuration. Nothing is opened before [Engine.Start].
func New(cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	shape, errShape := tally.NewShape(cfg.Tally)
	if err := errors.Join(cfg.Check(), errShape); err != nil {
		return nil, err
	}
	return &Engine{cfg: cfg, shape: shape}, nil
}

// Watch sets what receives transfers and errors; see [Handler]. It must come before [Engine.Start].
func (e *Engine) Watch(transfer func(*Agent, *tally.Transfer), failure func(*Agent, tally.Error)) {
	e.cfg.Handler.Transfer, e.cfg.Handler.Error = transfer, failure
}

// Report reports a notice. It must not be called before [Engine.Start].
func (e *Engine) Report(n notice.Notice) { e.reporter.Report(n) }

// Start starts to discover and drain rings. Problems with directories and rings are
// reported and retried; Start doesn't return them. If storage isn't nil, totals
// continue from the checkpoints in it.
func (e *Engine) Start(storage Storage) error {
	e.reporter = notice.New(e.cfg.Report, e.cfg.Now)
	e.loop = drain.NewLoop(drain.LoopConfig{
		Config: drain.Config{
			Shape: e.shape, Observe: e.cfg.Observe, RunInterval: e.cfg.RunInterval, MaxRings: drain.MaxRings, StaleAfter: e.cfg.StaleAfter, Handler: e.cfg.Handler,
			Stream: e.cfg.Stream,
		},
		Storage: storage, Report: e.reporter.Report, Now: e.cfg.Now,
		ObserveLag: e.cfg.Telemetry.Lag, ObserveEvents: e.cfg.Telemetry.Events, ObserveSave: e.cfg.Telemetry.Saved,
	})
	common := discover.Config{
		Include: e.cfg.Include, Observe: e.cfg.Observe,
		AllowedUIDs: e.cfg.AllowedUIDs, Resource: e.cfg.Resource, Now: e.cfg.Now, Searched: e.cfg.Telemetry.Searched,
	}
	if e.cfg.Stores {
		common.Stores = &discover.Stores{
			Limit: drain.MaxRings, StaleAfter: e.cfg.StaleAfter, Histograms: e.cfg.Tally.Duration.Kind != tally.NoHistogram, Stream: e.cfg.Stream,
		}
	}
	if len(e.cfg.Directories) > 0 {
		e.addSource(common, discover.Configured(e.cfg.Directories, e.cfg.PodUID, e.cfg.IdentifyBy))
	}
	if k := e.cfg.Kubelet; k != nil {
		e.addSource(common, k.Finder(e.cfg.IdentifyBy))
	}
	if e.cfg.Processes != nil {
		p := *e.cfg.Processes
		p.StaleAfter = e.cfg.StaleAfter
		e.addSource(common, p.Finder(e.cfg.IdentifyBy, slices.Collect(maps.Keys(e.cfg.Resource))...))
	}
	for _, s := range e.sources {
		s.Start()
	}
	return nil
}

// addSource adds a source.
func (e *Engine) addSource(cfg discover.Config, f discover.Finder) {
	cfg.Finder = f
	e.sources = append(e.sources, discover.NewWatcher(cfg, e.loop.Send, e.reporter))
}

// Collect drains all rings, reads all stores, and returns the totals of all agents; see [drain.Loop.Collect]. Those of
// an agent are in the order in which they began. The first and the last collection search for rings and
// stores first, because a program may collect right after Start, and an agent may
// have started and exited since the last walk.
func (e *Engine) Collect(ctx context.Context, last bool) (drain.Collection, error) {
	switch first := !e.refreshed.Swap(true); {
	case last:
		e.finish(ctx)
	case first:
		e.Refresh(ctx)
	}
	stores := e.stores(ctx)
	c, err := e.loop.Collect(ctx, last)
	c.Snapshots = append(c.Snapshots, stores...)
	return c, err
}

// askTimeout limits the wait for directories, because one that hangs must not delay the
// agents of the others. lastSearch limits the last search, which must not delay a shutdown.
const (
	askTimeout = time.Second
	lastSearch = askTimeout / 2
)

// Refresh discovers the rings and stores that currently exist, so that the next collection
// includes them. It waits for a second or a quarter of ctx's time, whichever is less.
func (e *Engine) Refresh(ctx context.Context) { e.ask(ctx, askTimeout, (*discover.Watcher).Refresh) }

// finish is like Refresh, but cancels a search that takes too long. What it didn't find is
// left to the next process.
func (e *Engine) finish(ctx context.Context) {
	if !e.ask(ctx, lastSearch, (*discover.Watcher).Refresh) {
		for _, s := range e.sources {
			s.Cancel()
		}
	}
}

// stores reads all stores, on the goroutines of their directories. It returns those that were read
// in time.
func (e *Engine) stores(ctx context.Context) []Snapshot {
	var mu sync.Mutex
	var all []Snapshot
	add := func(some []Snapshot) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
	}
	e.ask(ctx, askTimeout-lastSearch, func(w *discover.Watcher) { w.Stores(add) })
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(all) // add may still be called
}

// ask calls a method of all sources, and reports false if that takes too long.
func (e *Engine) ask(ctx context.Context, timeout time.Duration, method func(*discover.Watcher)) bool {
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan struct{}, len(e.sources))
	for _, s := range e.sources {
		go func() {
			method(s)
			done <- struct{}{}
		}()
	}
	for range e.sources {
		select {
		case <-done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Delivered records that a collection was exported.
func (e *Engine) Delivered(c drain.Collection) { e.loop.Delivered(c) }

// Stop closes all rings and stores, and waits for pending operations until ctx ends. If
// a file system or the storage hangs longer, it returns an error that names it. Stop
// may be called more than once, and before Start.
func (e *Engine) Stop(ctx context.Context) error {
	if e.loop == nil {
		return nil
	}
	// Stop directories and saving concurrently, because each may take until ctx ends.
	errs := make([]error, 2+len(e.sources))
	errs[0] = e.loop.Stop(ctx)
	var ends sync.WaitGroup
	for i, s := range e.sources {
		ends.Go(func() { errs[2+i] = s.Stop(ctx) })
	}
	ends.Go(func() { errs[1] = e.loop.StopSaving(ctx) })
	ends.Wait()
	e.reporter.Close()
	return errors.Join(errs...)
}

// State returns the state of all sources together. It never blocks.
func (e *Engine) State() State {
	s := discover.NewState()
	for _, source := range e.sources {
		s.Add(source.State())
	}
	return s
}
