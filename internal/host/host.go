// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package host reports the NIXL agents of a host: it discovers their rings,
// drains them, and stores the totals. It also reads the stores of NIXL's
// prometheus_mp exporter. The receiver, bridge/rings and nixlring
// use it.
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

// MinStaleAfter is the shortest StaleAfter that makes a difference.
const MinStaleAfter = discover.ProbeInterval

// Config says what to watch, and how. At least one of Directories, Processes and
// Kubelet must be set.
type Config struct {
	Directories []string            // one ring per agent is in them, named after the agent
	Processes   *discover.Processes // finds the directories of the agents of all processes
	Kubelet     *discover.Kubelet   // finds the emptyDir volumes of pods
	IdentifyBy  discover.IdentifyBy // what identifies an agent that Processes or Kubelet finds
	Include     []string            // doublestar patterns, relative to the directory; * if empty
	Exclude     []string
	Mode        ringbuf.Mode
	RunInterval time.Duration // of the agents; the starting value for what is learned
	MaxRings    int
	AllowedUIDs []uint32 // owners whose rings are opened; any if empty
	StaleAfter  time.Duration
	Tally       tally.Config
	// Stores has the stores of NIXL's prometheus_mp exporter read, too. Include and
	// Exclude apply to the names of their agents, and MaxRings to rings and stores
	// together.
	Stores bool

	// Report receives what an operator may want to know. It must not block.
	Report func(notice.Notice)
	// Tap is shown every event before it is committed; nil for none. The ring
	// waits for it.
	Tap func(drain.Agent, ringbuf.Batch)
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// OpenFolder opens a folder below a directory; ringbuf.OpenFolder if nil.
	OpenFolder func(dir, name string) (*ringbuf.Folder, error)

	// Telemetry receives the figures about the work itself; its fields may be nil.
	Telemetry Telemetry
}

// Telemetry receives figures about draining and saving. Its functions must not
// block.
type Telemetry struct {
	Lag    func(time.Duration)                 // how late a round of drains began
	Events func(uint64)                        // how many events a round counted
	Saved  func(took time.Duration, err error) // how long a save took, and what went wrong

	Searched func(source string, took time.Duration) // how long a search of processes or of the kubelet's pods took
}

// Host watches directories of rings. Its methods are safe for concurrent use.
type Host struct {
	cfg       Config
	shape     *tally.Shape
	reporter  *notice.Reporter
	saver     *checkpoint.Saver // nil without a store
	loop      *drain.Loop       // nil before Start
	sources   []source
	discovery map[string]source  // those of sources that discover directories
	stores    []*store.Directory // of directories

	mu         sync.Mutex
	discovered map[string]*store.Directory // by scope, nil after Stop
	looked     atomic.Bool                 // for the first collection
	watch      *drain.Watch
}

// source finds rings.
type source interface {
	Start()
	Look(done func())
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
	return &Host{cfg: cfg, shape: shape, discovery: make(map[string]source), discovered: make(map[string]*store.Directory)}, nil
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

// Watch shows slow transfers and errors to w from [Host.Start] on, which it must be
// called before. The rings wait for its functions.
func (h *Host) Watch(w *drain.Watch) { h.watch = w }

// Report reports what an operator may want to know. It must not be called before
// [Host.Start].
func (h *Host) Report(n notice.Notice) { h.reporter.Report(n) }

// Start begins to discover and to drain. Nothing that is wrong with a directory
// or a ring is an error: it is reported, and tried again. With storage, which may
// be nil, totals continue from the process that used it before.
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
		AllowedUIDs: h.cfg.AllowedUIDs, Rings: discover.NewRings(h.cfg.MaxRings), Now: h.cfg.Now, OpenFolder: h.cfg.OpenFolder,
	}
	for _, dir := range h.cfg.Directories {
		one := common
		one.Dir = dir
		d, err := discover.New(one, h.loop.Send, h.reporter)
		if err != nil {
			return err
		}
		h.sources = append(h.sources, d)
		if err := h.readStores(dir, common.Rings); err != nil {
			return err
		}
	}
	if k := h.cfg.Kubelet; k != nil {
		volumes := common
		volumes.CloseExited = true
		h.places("kubelet", volumes, k.Finder(h.cfg.IdentifyBy), discover.DefaultInterval)
	}
	if p := h.cfg.Processes; p != nil {
		finder := *p
		if h.cfg.Stores {
			finder.FoundStores = func(all map[string]*discover.Stores) { h.discover(all, common.Rings) }
		}
		h.places("processes", common, finder.Finder(h.cfg.IdentifyBy), p.Interval)
	}
	for _, s := range h.sources {
		s.Start()
	}
	return nil
}

func (h *Host) places(name string, common discover.Config, f discover.Finder, every time.Duration) {
	cfg := discover.PlacesConfig{Config: common, Finder: f, Interval: every}
	if searched := h.cfg.Telemetry.Searched; searched != nil {
		cfg.Searched = func(took time.Duration) { searched(name, took) }
	}
	p := discover.NewPlaces(cfg, h.loop.Send, h.reporter)
	h.sources = append(h.sources, p)
	h.discovery[name] = p
}

// readStores begins to read the stores in a directory.
func (h *Host) readStores(dir string, rings *discover.Rings) error {
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

// discover begins to read stores that were discovered, and ends it once they are gone
// and their agents are no longer reported.
func (h *Host) discover(all map[string]*discover.Stores, rings *discover.Rings) {
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
		ended, cancel := context.WithCancel(context.Background())
		cancel() // it ends by itself, unless its file system hangs
		_ = d.Stop(ended)
	}
	for scope, s := range all {
		if h.discovered[scope] != nil {
			continue
		}
		cfg := h.storeConfig(s.Path(), rings)
		cfg.Folders, cfg.Scope, cfg.Identify = s.Folders, scope, s.Identify
		d, err := store.New(cfg)
		if err != nil { // the path isn't absolute, and there is no working directory
			continue
		}
		d.Start()
		h.discovered[scope] = d
	}
}

// allStores returns the directories of stores. With last, none is added later.
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
// see [drain.Loop.Collect]. The first and the last collection look for rings and
// stores before: a program may collect right after Start, and an agent may have
// begun and exited since the last walk.
func (h *Host) Collect(ctx context.Context, last bool) (Collection, error) {
	look := !h.looked.Swap(true) || last
	if look {
		h.Look(ctx)
	}
	var c Collection
	for _, s := range h.allStores(false) {
		c.stores = append(c.stores, s.Collect(look))
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

// lookTimeout is how long a directory is waited for, and no longer than a quarter
// of what ctx allows: one that hangs must not delay the agents of the others.
const lookTimeout = time.Second

// Look finds the rings that are in the directories now, so that the next
// collection has them.
func (h *Host) Look(ctx context.Context) {
	timeout := lookTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan struct{}, len(h.sources))
	for _, s := range h.sources {
		s.Look(func() { done <- struct{}{} })
	}
	for range h.sources {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// Delivered says that a collection has arrived where it was sent.
func (h *Host) Delivered(c Collection) {
	h.loop.Delivered(c.rings)
	for _, s := range c.stores {
		s.Delivered()
	}
}

// Stop gives up all rings. It waits for what is under way until ctx ends: a file
// system or a store that hangs is left behind, which the error says. It is safe
// to call before Start, and twice.
func (h *Host) Stop(ctx context.Context) error {
	if h.loop == nil {
		return nil
	}
	// The directories and the saver end at the same time: each may use up ctx.
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

// State is what discovery knows. It never blocks.
type State struct {
	Open    int                         // rings and stores
	Refused map[string]discover.Refusal // by path
	Missing []error                     // directories that can't be read

	// Directories is how many directories were discovered, by source: processes or
	// kubelet, as far as these are configured.
	Directories map[string]int
}

// State returns what discovery knows now.
func (h *Host) State() State {
	s := State{Refused: make(map[string]discover.Refusal), Directories: make(map[string]int)}
	for name, p := range h.discovery {
		s.Directories[name] = p.State().Directories
	}
	for _, source := range h.sources {
		s.add(source.State())
	}
	for _, d := range h.allStores(false) {
		s.add(d.State())
	}
	return s
}

func (s *State) add(one discover.State) {
	s.Open += one.Open
	maps.Copy(s.Refused, one.Refused)
	if one.Missing != nil {
		s.Missing = append(s.Missing, one.Missing)
	}
}

// Err returns what keeps rings and stores from being read, or nil: a directory that
// can't be read, or none of the rings and stores can be opened.
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
