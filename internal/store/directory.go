// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config says what a [Directory] looks for.
type Config struct {
	Dir         string
	Include     []string // doublestar patterns of the names of agents; all if empty
	Exclude     []string
	AllowedUIDs []uint32        // owners whose stores are read; any if empty
	Rings       *discover.Rings // counts rings and stores; must not be nil
	StaleAfter  time.Duration   // how long an agent that has exited is still reported
	Histograms  bool            // totals have histograms of durations

	Notices *notice.Reporter
	Saver   *checkpoint.Saver // nil to keep totals for the life of this program only

	// ReadTimeout is how long a collection waits for the file system, and no longer
	// than a quarter of what its context allows; a second if 0.
	ReadTimeout time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Uptime returns how long the machine has run, without the time that it was
	// suspended as far as possible; the kernel's if nil.
	Uptime func() (time.Duration, error)

	// Folders returns functions that open the folders that have stores now: a pod
	// may have several under one path, one after the other or in several
	// containers. If nil, there is one, Dir.
	Folders func() []func() (*ringbuf.Folder, error)
	// Scope distinguishes agents of different pods; Dir if empty.
	Scope string
	// Identify adds what is known about the process of an agent; it may be nil.
	Identify func(a drain.Agent, pid int64) drain.Agent
}

// Directory reads the stores in one directory. Its methods are safe for
// concurrent use, and none of them waits for the file system.
type Directory struct {
	cfg     Config
	notices *notice.Reporter
	worker  *discover.Worker
	late    atomic.Bool // a collection wasn't carried out in time

	// The worker's goroutine has the following fields to itself.
	agents      map[string]*agent  // by ID
	records     map[string]*record // by name of the file
	walks       uint64
	complete    bool // the last walk came to the end
	collections uint64
	urgent      bool // a process joined the base of its agent since the last save

	saving  time.Time    // when the save began that isn't done; zero if there is none
	waiting []func(bool) // called after the save that follows it

	// Memory that is used again and again.
	bytes         [size]byte
	values, total tally.Values

	mu      sync.Mutex // guards what follows; held for moments only
	stores  int        // that are open
	known   int        // agents
	refused map[string]discover.Refusal
}

// New returns a Directory. Nothing is opened before Start.
func New(cfg Config) (*Directory, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	if cfg.ReadTimeout == 0 {
		cfg.ReadTimeout = time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Uptime == nil {
		cfg.Uptime = uptime
	}
	cfg.Scope = cmp.Or(cfg.Scope, cfg.Dir)
	if cfg.Folders == nil {
		open := func() (*ringbuf.Folder, error) { return ringbuf.OpenFolder(cfg.Dir, ".") }
		cfg.Folders = func() []func() (*ringbuf.Folder, error) { return []func() (*ringbuf.Folder, error){open} }
	}
	if cfg.Identify == nil {
		cfg.Identify = func(a drain.Agent, _ int64) drain.Agent { return a }
	}
	d := &Directory{
		cfg: cfg, notices: cfg.Notices,
		agents: make(map[string]*agent), records: make(map[string]*record), refused: make(map[string]discover.Refusal),
	}
	d.worker = discover.NewWorker(cfg.Now, d.hangs)
	return d, nil
}

// uptime reads the time since the machine was started. CLOCK_MONOTONIC, which is
// what stores have, is the same on a machine that is never suspended.
func uptime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	return time.Duration(seconds * float64(time.Second)), err
}

// wants reports whether an agent is to be reported.
func (d *Directory) wants(agent string) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, agent) })
	}
	return (len(d.cfg.Include) == 0 || matches(d.cfg.Include)) && !matches(d.cfg.Exclude)
}

// Start begins to look for stores. It doesn't wait for the first walk.
func (d *Directory) Start() { d.worker.Start(d.run) }

// Stop closes all stores. It waits for that until ctx ends, as the file system may
// hang. It is safe to call twice, and before Start.
func (d *Directory) Stop(ctx context.Context) error {
	if err := d.worker.Stop(ctx); err != nil {
		return fmt.Errorf("stop reading stores in %s: its file system doesn't answer: %w", d.cfg.Dir, err)
	}
	return nil
}

// Empty reports whether there is no agent to report.
func (d *Directory) Empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known == 0
}

// State returns what the directory has found. It never blocks.
func (d *Directory) State() discover.State {
	d.mu.Lock()
	s := discover.State{Open: d.stores, Refused: maps.Clone(d.refused)}
	d.mu.Unlock()
	if hangs := d.worker.Hangs(); hangs > 0 {
		s.Missing = fmt.Errorf("%s: a store can't be read: file system hasn't answered for %v", d.cfg.Dir, hangs)
	}
	return s
}

func (d *Directory) run(ctx context.Context) {
	walk := time.NewTimer(0)
	defer walk.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-d.worker.Asked():
			d.worker.Do(func() { d.worker.Answer(false) })
		case <-walk.C:
			d.worker.Do(d.tick)
			walk.Reset(discover.ProbeInterval)
		}
	}
	d.worker.Do(d.end)
}

func (d *Directory) hangs() {
	d.notices.Report(notice.Notice{
		Kind: notice.DirectoryHangs, Level: slog.LevelError, Path: d.cfg.Dir,
		Text: fmt.Sprintf("file system hasn't answered for %v; until it does, the agents that have stores in this directory aren't reported; check the file system", discover.HangsAfter),
	})
}

// tick looks for new stores, and for processes that have exited.
func (d *Directory) tick() {
	d.walk()
	for _, a := range d.agents {
		d.poll(a, false)
	}
	d.loadDue()
	d.retire()
	if d.urgent {
		d.save(func(bool) {})
	}
	d.mu.Lock()
	d.known = len(d.agents)
	d.mu.Unlock()
}

// end does what was asked last, and closes all stores.
func (d *Directory) end() {
	d.worker.Answer(true)
	for _, a := range d.agents {
		d.drop(a)
	}
	for name, r := range d.records {
		d.forget(name, r)
	}
}
