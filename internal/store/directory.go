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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config configures a [Directory].
type Config struct {
	Dir         string
	Include     []string // doublestar patterns of agent names; all if empty
	Exclude     []string
	AllowedUIDs []uint32        // owners whose stores are read; any if empty
	Rings       *discover.Rings // counts rings and stores; must not be nil
	StaleAfter  time.Duration   // time that an exited agent is still reported
	Histograms  bool            // totals have histograms of durations

	Notices *notice.Reporter
	Saver   *checkpoint.Saver // nil if totals aren't saved

	// ReadTimeout limits the time that a collection waits for the file system; a second
	// if 0. The wait never exceeds a quarter of the time that its context allows.
	ReadTimeout time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Uptime returns the time since the machine was started, if possible without the
	// time that it was suspended; the kernel's if nil.
	Uptime func() (time.Duration, error)

	// Dirs returns functions that open the directories with stores. A pod may
	// have several directories at the same path, in several containers or after a
	// restart. If nil, Dir is the only one.
	Dirs func() []func() (*ringbuf.Dir, error)
	// Scope distinguishes agents of different pods; Dir if empty.
	Scope string
	// Identify sets the resource of an agent from one of its processes; it may be nil.
	Identify func(a drain.Agent, pid int64) drain.Agent
}

// Directory reads the stores in one directory. Its methods are safe for concurrent use
// after Start, and none of them waits for the file system, except for Stop.
type Directory struct {
	cfg     Config
	notices *notice.Reporter
	worker  *discover.Worker
	overdue atomic.Bool // a collection is still reading after its timeout

	// Only the worker's goroutine uses the fields in this group and the next three.
	agents      map[string]*agent  // by ID
	order       []*agent           // agents in order of discovery, which is faster to read than in random order
	records     map[string]*record // by file name
	walks       uint64
	complete    bool // the last walk read all entries
	collections uint64
	saveSoon    bool // a process was added to the base of its agent since the last save

	saving  time.Time    // start of the current save; zero if there is none
	waiting []func(bool) // callbacks of the next save

	shape  *tally.Shape // of the last opened store
	bounds []float64    // of shape

	// Buffers that are reused.
	bytes [size]byte
	total tally.Values
	spare atomic.Pointer[buffers] // of a released collection; may be nil

	mu      sync.Mutex // guards the fields below; never held during a call that may block
	stores  int        // open stores
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
	if cfg.Dirs == nil {
		open := func() (*ringbuf.Dir, error) { return ringbuf.OpenDir(cfg.Dir, ".") }
		cfg.Dirs = func() []func() (*ringbuf.Dir, error) { return []func() (*ringbuf.Dir, error){open} }
	}
	if cfg.Identify == nil {
		cfg.Identify = func(a drain.Agent, _ int64) drain.Agent { return a }
	}
	d := &Directory{
		cfg: cfg, notices: cfg.Notices,
		agents: make(map[string]*agent), records: make(map[string]*record), refused: make(map[string]discover.Refusal),
	}
	d.worker = discover.NewWorker(cfg.Now, d.reportHang)
	return d, nil
}

// uptime returns the time since the machine was started. Stores contain times of
// CLOCK_MONOTONIC, which is the same on a machine that is never suspended.
func uptime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	return time.Duration(seconds * float64(time.Second)), err
}

// matches reports whether the include and exclude patterns select an agent.
func (d *Directory) matches(agent string) bool {
	return (len(d.cfg.Include) == 0 || discover.MatchesAny(d.cfg.Include, agent)) && !discover.MatchesAny(d.cfg.Exclude, agent)
}

// Start starts the search for stores. It doesn't wait for the first walk.
func (d *Directory) Start() { d.worker.Start(d.run) }

// Stop closes all stores. Because the file system may hang, it waits only until ctx
// ends. Stop may be called more than once, and before Start.
func (d *Directory) Stop(ctx context.Context) error {
	if err := d.worker.Stop(ctx); err != nil {
		return fmt.Errorf("stop reading stores in %s: file system is not responding: %w", d.cfg.Dir, err)
	}
	return nil
}

// Empty reports whether the directory has no agents to report.
func (d *Directory) Empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known == 0
}

// State returns the state of the directory. It never blocks.
func (d *Directory) State() discover.State {
	d.mu.Lock()
	s := discover.State{Open: d.stores, Refused: maps.Clone(d.refused)}
	d.mu.Unlock()
	if hung := d.worker.HungFor(); hung > 0 {
		s.Missing = fmt.Errorf("%s: a store can't be read: file system has not responded for %v", d.cfg.Dir, hung)
	}
	return s
}

// run is the worker's goroutine.
func (d *Directory) run(ctx context.Context) {
	walk := time.NewTimer(0)
	defer walk.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-d.worker.Submitted():
			d.worker.Do(func() { d.worker.RunSubmitted(false) })
		case <-walk.C:
			d.worker.Do(d.refresh)
			walk.Reset(discover.ProbeInterval)
		}
	}
	d.worker.Do(d.end)
}

func (d *Directory) reportHang() {
	d.notices.Report(notice.Notice{
		Kind: notice.DirectoryHangs, Level: slog.LevelError, Path: d.cfg.Dir,
		Text: fmt.Sprintf("file system has not responded for %v; agents with stores in this directory are not reported until it does; check the file system", discover.HangTimeout),
	})
}

// refresh searches for new stores and for exited processes.
func (d *Directory) refresh() {
	d.walk()
	for _, a := range d.order {
		d.checkExits(a)
	}
	d.expireLoads()
	d.retire()
	if d.saveSoon {
		d.save(func(bool) {})
	}
	d.mu.Lock()
	d.known = len(d.agents)
	d.mu.Unlock()
}

// end runs the functions that were submitted last, and closes all stores.
func (d *Directory) end() {
	d.worker.RunSubmitted(true)
	for _, a := range d.agents {
		d.drop(a)
	}
	for name, r := range d.records {
		d.forget(name, r)
	}
}
