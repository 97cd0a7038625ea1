// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

const (
	// DefaultInterval is the default interval between searches.
	DefaultInterval = 5 * time.Second
	// seekInterval is the shortest interval while a process is sought.
	seekInterval = time.Second
)

// Finder finds directories of rings, such as those in containers.
type Finder struct {
	Source string // for telemetry: processes or kubelet; "" if the directories are configured
	Name   string // the searched file system or directory, for messages
	// Find returns all directories that exist, by a key that identifies each, or nil
	// if the search failed. If only a part of the search failed, it returns an error
	// and the directories that it found. It may block.
	Find     func(now time.Time) (map[string]Location, error)
	Interval time.Duration // between searches; zero if the directories are configured

	// Hold keeps a directory open between walks, because opening it takes many system calls.
	// An open directory prevents unmounting its file system in this mount namespace.
	Hold bool
	// CloseExited closes rings soon after their agents have exited, because an open ring
	// prevents unmounting its volume.
	CloseExited bool
}

// Location is a directory of rings that a [Finder] has found. Its functions are safe for
// concurrent use.
type Location struct {
	Path   string // when it was found
	Holder drain.Holder
	// OpenDir opens a directory at or below Path. The error wraps errGone if the directory
	// was removed with its container.
	OpenDir func(name string) (*files.Dir, error)
	// Identify sets the ID and the resource of the agent of a ring or a store, such as its pod. It must not block.
	// A process that has the file mapped is sought until a search that began after since has ended. Attributes may
	// change after each search.
	Identify func(a drain.Agent, file files.ID, since time.Time) attributed
}

// Configured returns a Finder of configured directories, which may come and go. pod is the UID of the pod of
// all their agents; "" without one.
func Configured(dirs []string, pod string, by IdentifyBy) Finder {
	return Finder{Name: "directories", Find: func(time.Time) (map[string]Location, error) {
		found := make(map[string]Location)
		for _, dir := range dirs {
			abs, _ := filepath.Abs(dir) // CheckDirectories reports the error
			found[abs] = Location{
				Path: abs, Holder: drain.Holder{Place: abs, Shared: true},
				OpenDir:  func(name string) (*files.Dir, error) { return files.OpenDir(abs, name) },
				Identify: func(a drain.Agent, _ files.ID, _ time.Time) attributed { return by.identify(a, origin{pod: pod}) },
			}
		}
		return found, nil
	}}
}

// Watcher watches the directories that a [Finder] finds. It runs a [Directory] for
// each of them, so a directory that hangs delays no other.
type Watcher struct {
	cfg      Config
	send     func(drain.Message)
	notices  *notice.Reporter
	searches chan chan struct{} // requests to search; they are closed afterwards
	wanted   chan struct{}      // a process is sought
	seekWait time.Duration      // between two searches then
	cancel   context.CancelFunc
	ended    chan struct{}

	advised advice // of all directories; see Directory

	mu      sync.Mutex
	watched map[string]*Directory // by the finder's key
	closing []*Directory          // removed directories whose rings aren't closed yet
	missing error
	refused map[string]Refusal // directories that exceed the limit
}

// State is the state of a [Watcher], for telemetry and health checks.
type State struct {
	Missing     []error            // why rings can't be found
	Open        int                // open rings and stores
	Refused     map[string]Refusal // files that can't be opened, by path
	Directories map[string]int     // number of discovered directories, by source
}

// NewState returns an empty State.
func NewState() State {
	return State{Refused: make(map[string]Refusal), Directories: make(map[string]int)}
}

// Add adds the state of other directories.
func (s *State) Add(other State) {
	s.Missing = append(s.Missing, other.Missing...)
	s.Open += other.Open
	maps.Copy(s.Refused, other.Refused)
	maps.Copy(s.Directories, other.Directories)
}

// Err returns an error if some directories can't be read, or none of the rings can be opened.
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

// NewWatcher returns a Watcher. It passes messages to send. Nothing is opened before
// Start.
func NewWatcher(cfg Config, send func(drain.Message), notices *notice.Reporter) *Watcher {
	return &Watcher{
		cfg: cfg, send: send, notices: notices,
		searches: make(chan chan struct{}), wanted: make(chan struct{}, 1), seekWait: seekInterval, ended: make(chan struct{}), watched: make(map[string]*Directory),
	}
}

// Start starts the searches. It doesn't wait for the first one.
func (w *Watcher) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go w.run(ctx)
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.ended)
	timer, hangs, last := time.NewTimer(0), time.NewTicker(ProbeInterval), time.Time{}
	defer timer.Stop()
	defer hangs.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case searched := <-w.searches:
			w.search(ctx)
			close(searched)
		case <-w.wanted:
			timer.Reset(max(time.Until(last.Add(min(w.seekWait, w.cfg.Interval))), 0))
		case <-timer.C:
			last = time.Now()
			if w.search(ctx); w.cfg.Interval > 0 {
				timer.Reset(w.cfg.Interval)
			}
		case <-hangs.C:
			for _, d := range w.directories() {
				d.checkHang()
			}
		}
	}
}

// search starts to watch new directories, and abandons removed ones.
func (w *Watcher) search(ctx context.Context) {
	began := w.cfg.Now()
	found, err := w.cfg.Find(began)
	if w.cfg.Searched != nil && w.cfg.Source != "" {
		w.cfg.Searched(w.cfg.Source, w.cfg.Now().Sub(began))
	}
	if ctx.Err() != nil {
		return
	}
	w.reportSearch(err)
	if found != nil {
		w.update(found)
		for _, d := range w.directories() {
			d.calls.Put(d.attribute)
		}
	}
}

// seek makes a search due, because the process of an agent isn't known. It never blocks.
func (w *Watcher) seek() {
	select {
	case w.wanted <- struct{}{}:
	default:
	}
}

// update starts to watch new directories, and abandons those that are no longer found.
func (w *Watcher) update(found map[string]Location) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.refused
	w.refused = make(map[string]Refusal)
	for key, l := range found {
		if w.watched[key] == nil {
			w.admit(key, l, before)
		}
	}
	for key, d := range w.watched {
		if _, exists := found[key]; !exists {
			delete(w.watched, key)
			d.abandon()
			w.closing = append(w.closing, d)
		}
	}
	w.closing = slices.DeleteFunc(w.closing, (*Directory).hasEnded)
}

// maxDirectories limits the directories of a container or pod that are watched.
const maxDirectories = 16

// admit starts to watch a directory, unless its container already has too many.
func (w *Watcher) admit(key string, l Location, before map[string]Refusal) {
	h, same, paths := l.Holder, 0, new(atomic.Int64)
	for _, d := range slices.AppendSeq(slices.Clone(w.closing), maps.Values(w.watched)) {
		if d.at.Holder == h {
			same, paths = same+1, d.paths
		}
	}
	if !h.Isolated() || same < maxDirectories {
		d := newDirectory(w.cfg, l, w.send, w.notices)
		if d.paths, d.seek = paths, w.seek; w.cfg.Source != "" {
			d.advised = &w.advised
		}
		go d.run()
		w.watched[key] = d
		return
	}
	err := fmt.Errorf("%v has more than %d directories of rings; remove what its agents don't need", h, maxDirectories)
	w.refused[l.Path] = Refusal{Reason: "budget", Err: err}
	if _, reported := before[l.Path]; !reported {
		w.notices.Report(notice.Notice{
			Kind: notice.BudgetReached, Level: slog.LevelWarn, Path: w.cfg.Name, Pod: h.Pod, Container: h.Container, Err: err,
			Text: "not all directories are watched, and the events in the others aren't counted",
		})
	}
}

// reportSearch reports when searches start to fail, and when they succeed again.
func (w *Watcher) reportSearch(err error) {
	w.mu.Lock()
	before := w.missing
	w.missing = err
	w.mu.Unlock()
	n := notice.Notice{Path: w.cfg.Name, Level: slog.LevelWarn, Err: err}
	switch {
	case err != nil && before == nil:
		n.Kind, n.Text = notice.DiscoveryFailed, "discovery of agents is incomplete"
	case err == nil && before != nil:
		n.Kind, n.Level, n.Text = notice.DiscoveryWorks, slog.LevelInfo, "discovery of agents is complete again"
	default:
		return
	}
	w.notices.Report(n)
}

// Refresh searches, walks all directories, and searches for the processes of new rings. All messages
// about what it finds are sent when it returns.
func (w *Watcher) Refresh() {
	for _, fn := range []func(*Directory){(*Directory).refresh, func(*Directory) {}} { // each search attributes
		searched := make(chan struct{})
		select {
		case w.searches <- searched:
			<-searched
		case <-w.ended:
		}
		w.all(func(d *Directory, done func()) { d.request(func() { fn(d) }, done) })
	}
}

// Stores reads all stores, and passes their snapshots to add, also concurrently.
func (w *Watcher) Stores(add func([]drain.Snapshot)) {
	w.all(func(d *Directory, done func()) { d.readStores(add, done) })
}

// all calls fn for all directories, and waits until all of them have called done.
func (w *Watcher) all(fn func(d *Directory, done func())) {
	var left sync.WaitGroup
	for _, d := range w.directories() {
		left.Add(1)
		fn(d, left.Done)
	}
	left.Wait()
}

// directories returns the watched directories, and the removed ones whose rings aren't closed yet.
func (w *Watcher) directories() []*Directory {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.AppendSeq(slices.Clone(w.closing), maps.Values(w.watched))
}

// Cancel cancels the searches, for good. Open rings and stores stay open.
func (w *Watcher) Cancel() {
	w.cancel()
	for _, d := range w.directories() {
		d.cancel()
	}
}

// Stop stops the searches, and closes the rings that the owner has returned. Because a file system may hang,
// it waits only until ctx ends. Call Stop after the owner has returned its rings: rings returned later are closed
// in the background. Stop may be called more than once.
func (w *Watcher) Stop(ctx context.Context) error {
	w.Cancel()
	var err error
	select {
	case <-w.ended:
	case <-ctx.Done():
		err = fmt.Errorf("stop discovering agents in %s: %w", w.cfg.Name, ctx.Err())
	}
	all := w.directories()
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, d := range all {
		ends.Go(func() { errs[i] = d.stop(ctx) })
	}
	ends.Wait()
	return errors.Join(err, errors.Join(errs...))
}

// State returns the state of all directories together. It never blocks.
func (w *Watcher) State() State {
	s := NewState()
	for _, d := range w.directories() {
		s.Add(d.state())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missing != nil {
		s.Missing = append(s.Missing, w.missing)
	}
	maps.Copy(s.Refused, w.refused)
	if w.cfg.Source != "" {
		s.Directories[w.cfg.Source] = len(w.watched)
	}
	return s
}
