// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package host collects the totals of all NIXL agents on a host. It discovers rings,
// drains them, and saves checkpoints. It also reads the stores of NIXL's
// prometheus_mp exporter. The receiver, bridge/rings and nixlring use it.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/store"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Defaults of a [Config]. The run interval is NIXL's own.
const (
	DefaultRunInterval = 100 * time.Millisecond
	DefaultMaxRings    = 4096
	DefaultStaleAfter  = 5 * time.Minute
)

// MinStaleAfter is the minimum useful value of StaleAfter.
const MinStaleAfter = discover.ProbeInterval

// Config configures a [Host]. At least one of Directories, Processes and Kubelet must
// be set.
type Config struct {
	Directories []string            // contain one ring per agent, named after the agent
	Processes   *discover.Processes // finds the telemetry directories of all processes
	Kubelet     *discover.Kubelet   // finds the emptyDir volumes of pods
	IdentifyBy  discover.IdentifyBy // parts of the identity of discovered agents
	Include     []string            // doublestar patterns, relative to the directory; * if empty
	Exclude     []string
	Mode        ringbuf.Mode
	RunInterval time.Duration // initial estimate of the interval at which agents write events
	MaxRings    int
	AllowedUIDs []uint32 // owners whose rings are opened; any if empty
	StaleAfter  time.Duration
	Tally       tally.Config
	// Stores enables reading the stores of NIXL's prometheus_mp exporter. Include and
	// Exclude apply to the names of their agents, and MaxRings limits rings and stores
	// together.
	Stores bool

	// Report receives the notices for the operator. It must not block.
	Report func(notice.Notice)
	// Tap receives every event before it is committed; it may be nil. Draining of the
	// ring waits for it.
	Tap func(drain.Agent, ringbuf.Batch)
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// OpenDir opens a directory at or below another; ringbuf.OpenDir if nil.
	OpenDir func(dir, name string) (*ringbuf.Dir, error)

	// Telemetry receives measurements of the host's own work.
	Telemetry Telemetry
}

// Telemetry receives measurements of discovering, draining and saving. Its functions
// may be nil, and must not block.
type Telemetry struct {
	Lag    func(time.Duration)                 // delay of a round of drains
	Events func(uint64)                        // number of events that a round counted
	Saved  func(took time.Duration, err error) // duration and error of a save

	Searched func(source string, took time.Duration) // duration of a search of processes or of the kubelet's pods
}

// Host discovers and drains rings. Its methods are safe for concurrent use after
// Start.
type Host struct {
	cfg      Config
	shape    *tally.Shape
	reporter *notice.Reporter
	saver    *checkpoint.Saver // nil without storage
	loop     *drain.Loop       // nil before Start
	sources  []source
	watchers map[string]source  // the sources that discover directories, by name
	stores   []*store.Directory // of the configured directories

	mu         sync.Mutex
	discovered map[string]*store.Directory // by scope; nil after Stop
	refreshed  atomic.Bool                 // by the first collection
	watch      *drain.Watch
}

// source discovers rings.
type source interface {
	Start()
	Refresh(done func())
	Stop(ctx context.Context) error
	State() discover.State
}

// New checks the configuration. Nothing is opened before [Host.Start].
func New(cfg Config) (*Host, error) {
	cfg, errConfig := cfg.withDefaults()
	shape, errShape := tally.NewShape(cfg.Tally)
	if err := errors.Join(errConfig, errShape); err != nil {
		return nil, err
	}
	return &Host{cfg: cfg, shape: shape, watchers: make(map[string]source), discovered: make(map[string]*store.Directory)}, nil
}

func (c Config) withDefaults() (Config, error) {
	if len(c.Include) == 0 {
		c.Include = []string{"*"}
	}
	if len(c.IdentifyBy) == 0 {
		c.IdentifyBy = discover.DefaultIdentifyBy
	}
	if c.RunInterval == 0 {
		c.RunInterval = DefaultRunInterval
	}
	if c.MaxRings == 0 {
		c.MaxRings = DefaultMaxRings
	}
	if c.StaleAfter == 0 {
		c.StaleAfter = DefaultStaleAfter
	}
	if c.Report == nil {
		c.Report = func(notice.Notice) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	errs := []error{
		discover.CheckDirectories(c.Directories), c.IdentifyBy.Check(),
		discover.CheckPatterns("include", c.Include), discover.CheckPatterns("exclude", c.Exclude),
	}
	if len(c.Directories) == 0 && c.Processes == nil && c.Kubelet == nil {
		errs = append(errs, errors.New("directories: list at least one, such as /run/nixl"))
	}
	if c.RunInterval < time.Millisecond {
		errs = append(errs, fmt.Errorf("run interval is %v: it must be 1ms or more", c.RunInterval))
	}
	if c.MaxRings < 0 {
		errs = append(errs, fmt.Errorf("max rings is %d: it must be 1 or more", c.MaxRings))
	}
	if c.StaleAfter < 0 {
		errs = append(errs, fmt.Errorf("stale after is %v: it must be positive", c.StaleAfter))
	}
	return c, errors.Join(errs...)
}

// Watch passes slow transfers and errors to w. It must be called before [Host.Start].
// Draining waits for w's functions.
func (h *Host) Watch(w *drain.Watch) { h.watch = w }

// Report reports a notice. It must not be called before [Host.Start].
func (h *Host) Report(n notice.Notice) { h.reporter.Report(n) }

// Start starts to discover and drain rings. Problems with directories and rings are
// reported and retried; Start doesn't return them. If storage isn't nil, totals
// continue from the checkpoints in it.
func (h *Host) Start(storage checkpoint.Store) error {
	h.reporter = notice.New(h.cfg.Report, h.cfg.Now)
	if storage != nil && h.cfg.Mode == ringbuf.Consume { // an observer has no position to resume
		h.saver = checkpoint.NewSaver(checkpoint.Config{
			Store: storage, StaleAfter: h.cfg.StaleAfter, Now: h.cfg.Now,
			Report: func(text string, err error) {
				h.reporter.Report(notice.Notice{Kind: notice.StoreUntidy, Level: slog.LevelWarn, Text: text, Err: err})
			},
			Applied: h.cfg.Telemetry.Saved,
		})
		h.saver.Start()
	}
	h.loop = drain.NewLoop(drain.LoopConfig{
		Config: drain.Config{
			Shape: h.shape, Mode: h.cfg.Mode, RunInterval: h.cfg.RunInterval, StaleAfter: h.cfg.StaleAfter, Tap: h.cfg.Tap,
			Watch: h.watch,
		},
		Saver: h.saver, Report: h.reporter.Report, Now: h.cfg.Now,
		ObserveLag: h.cfg.Telemetry.Lag, ObserveEvents: h.cfg.Telemetry.Events,
	})
	exclude := h.cfg.Exclude
	if h.cfg.Stores {
		exclude = append(slices.Clip(exclude), store.Pattern)
	}
	common := discover.Config{
		Include: h.cfg.Include, Exclude: exclude, Mode: h.cfg.Mode,
		AllowedUIDs: h.cfg.AllowedUIDs, Rings: discover.NewRings(h.cfg.MaxRings), Now: h.cfg.Now, OpenDir: h.cfg.OpenDir,
	}
	for _, dir := range h.cfg.Directories {
		one := common
		one.Dir = dir
		d, err := discover.New(one, h.loop.Send, h.reporter)
		if err != nil {
			return err
		}
		h.sources = append(h.sources, d)
		if err := h.addStores(dir, common.Rings); err != nil {
			return err
		}
	}
	if k := h.cfg.Kubelet; k != nil {
		volumes := common
		volumes.CloseExited = h.cfg.Mode == ringbuf.Consume
		h.addWatcher("kubelet", volumes, k.Finder(h.cfg.IdentifyBy), discover.DefaultInterval)
	}
	if p := h.cfg.Processes; p != nil {
		finder := *p
		if h.cfg.Stores {
			finder.OnStores = func(all map[string]*discover.Stores) { h.updateStores(all, common.Rings) }
		}
		h.addWatcher("processes", common, finder.Finder(h.cfg.IdentifyBy), p.Interval)
	}
	for _, s := range h.sources {
		s.Start()
	}
	return nil
}

// addWatcher adds a source that discovers directories.
func (h *Host) addWatcher(name string, common discover.Config, f discover.Finder, interval time.Duration) {
	cfg := discover.WatcherConfig{Config: common, Finder: f, Interval: interval}
	if searched := h.cfg.Telemetry.Searched; searched != nil {
		cfg.Searched = func(took time.Duration) { searched(name, took) }
	}
	w := discover.NewWatcher(cfg, h.loop.Send, h.reporter)
	h.sources = append(h.sources, w)
	h.watchers[name] = w
}

// addStores starts to read the stores in a configured directory.
func (h *Host) addStores(dir string, rings *discover.Rings) error {
	if !h.cfg.Stores {
		return nil
	}
	s, err := store.New(h.storeConfig(dir, rings))
	if err != nil {
		return err
	}
	s.Start()
	h.stores = append(h.stores, s)
	return nil
}

func (h *Host) storeConfig(dir string, rings *discover.Rings) store.Config {
	return store.Config{
		Dir: dir, Include: h.cfg.Include, Exclude: h.cfg.Exclude, AllowedUIDs: h.cfg.AllowedUIDs,
		Rings: rings, StaleAfter: h.cfg.StaleAfter, Histograms: h.cfg.Tally.Duration.Kind != tally.NoHistogram,
		Notices: h.reporter, Saver: h.saver, Now: h.cfg.Now,
	}
}

// updateStores starts to read newly discovered stores. It stops reading stores that no
// longer exist once their agents are no longer reported.
func (h *Host) updateStores(all map[string]*discover.Stores, rings *discover.Rings) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.discovered == nil {
		return
	}
	for scope, d := range h.discovered {
		if all[scope] != nil || !d.Empty() {
			continue
		}
		delete(h.discovered, scope)
		canceled, cancel := context.WithCancel(context.Background())
		cancel() // don't wait: the file system may hang
		_ = d.Stop(canceled)
	}
	for scope, s := range all {
		if h.discovered[scope] != nil {
			continue
		}
		cfg := h.storeConfig(s.Path(), rings)
		cfg.Dirs, cfg.Scope, cfg.Identify = s.Dirs, scope, s.Identify
		d, err := store.New(cfg)
		if err != nil { // the path isn't absolute, and there is no working directory
			continue
		}
		d.Start()
		h.discovered[scope] = d
	}
}

// allStores returns all directories of stores. With last, no more are added.
func (h *Host) allStores(last bool) []*store.Directory {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Clone(h.stores)
	for _, scope := range slices.Sorted(maps.Keys(h.discovered)) {
		list = append(list, h.discovered[scope])
	}
	if last {
		h.discovered = nil
	}
	return list
}

// Collection is the totals of all agents at one time.
type Collection struct {
	Snapshots []drain.Snapshot
	rings     drain.Collection
	stores    []*store.Collection
}

// Collect drains all rings, reads all stores, and returns the totals of all agents;
// see [drain.Loop.Collect]. The first and the last collection search for rings and
// stores first, because a program may collect right after Start, and an agent may
// have started and exited since the last walk.
func (h *Host) Collect(ctx context.Context, last bool) (Collection, error) {
	refresh := !h.refreshed.Swap(true) || last
	if refresh {
		h.Refresh(ctx)
	}
	var c Collection
	for _, s := range h.allStores(false) {
		c.stores = append(c.stores, s.Collect(refresh))
	}
	var err error
	if c.rings, err = h.loop.Collect(ctx, last); err != nil {
		return Collection{}, err
	}
	c.Snapshots = c.rings.Snapshots
	for _, s := range c.stores {
		c.Snapshots = append(c.Snapshots, s.Wait(ctx)...)
	}
	return c, nil
}

// refreshTimeout limits the wait for directories, because one that hangs must not delay
// the agents of the others.
const refreshTimeout = time.Second

// Refresh discovers the rings that currently exist, so that the next collection
// includes them. It waits for a second or a quarter of ctx's time, whichever is less.
func (h *Host) Refresh(ctx context.Context) {
	timeout := refreshTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan struct{}, len(h.sources))
	for _, s := range h.sources {
		s.Refresh(func() { done <- struct{}{} })
	}
	for range h.sources {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// Release lets a later collection reuse memory of the snapshots. The caller must not use
// them afterwards. Without Release, the snapshots never change.
func (c Collection) Release() {
	for _, s := range c.stores {
		s.Release()
	}
}

// Delivered records that a collection was exported.
func (h *Host) Delivered(c Collection) {
	h.loop.Delivered(c.rings)
	for _, s := range c.stores {
		s.Delivered()
	}
}

// Stop closes all rings and stores, and waits for pending operations until ctx ends. If
// a file system or the storage hangs longer, it returns an error that names it. Stop
// may be called more than once, and before Start.
func (h *Host) Stop(ctx context.Context) error {
	if h.loop == nil {
		return nil
	}
	// Stop directories and the saver concurrently, because each may take until ctx ends.
	stores := h.allStores(true)
	sources := 2 + len(stores)
	errs := make([]error, sources+len(h.sources))
	errs[0] = h.loop.Stop(ctx)
	var ends sync.WaitGroup
	for i, s := range stores {
		ends.Go(func() { errs[2+i] = s.Stop(ctx) })
	}
	for i, s := range h.sources {
		ends.Go(func() { errs[sources+i] = s.Stop(ctx) })
	}
	if h.saver != nil {
		ends.Go(func() { errs[1] = h.saver.Stop(ctx) })
	}
	ends.Wait()
	h.reporter.Close()
	return errors.Join(errs...)
}

// State is the state of discovery.
type State struct {
	Open    int                         // rings and stores
	Refused map[string]discover.Refusal // by path
	Missing []error                     // directories that can't be read

	// Directories is the number of discovered directories by source: processes and
	// kubelet, if they are configured.
	Directories map[string]int
}

// State returns the state of discovery. It never blocks.
func (h *Host) State() State {
	s := State{Refused: make(map[string]discover.Refusal), Directories: make(map[string]int)}
	for name, w := range h.watchers {
		s.Directories[name] = w.State().Directories
	}
	for _, source := range h.sources {
		s.add(source.State())
	}
	for _, d := range h.allStores(false) {
		s.add(d.State())
	}
	return s
}

// add adds the state of one source.
func (s *State) add(one discover.State) {
	s.Open += one.Open
	maps.Copy(s.Refused, one.Refused)
	if one.Missing != nil {
		s.Missing = append(s.Missing, one.Missing)
	}
}

// Err returns an error if a directory can't be read, or if no ring or store can be
// opened although there are some.
func (s State) Err() error {
	var errs []error
	for _, err := range s.Missing {
		errs = append(errs, fmt.Errorf("telemetry directory can't be read: %w", err))
	}
	if s.Open == 0 && len(s.Refused) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(s.Refused)))
		errs = append(errs, fmt.Errorf("none of %d rings can be opened; the first: %w", len(s.Refused), s.Refused[first].Err))
	}
	return errors.Join(errs...)
}
