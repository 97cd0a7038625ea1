// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

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

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// DefaultInterval is the default interval between searches.
const DefaultInterval = 5 * time.Second

// Finder finds directories of rings that come and go, such as those in
// containers. It may block.
type Finder interface {
	// Find returns all directories that exist, by a key that identifies each, or nil
	// if the search failed. If only a part of the search failed, it returns an error
	// and the directories that it found.
	Find(now time.Time) (map[string]Location, error)
	// Name names the searched file system or directory in messages.
	Name() string
}

// Location is a directory of rings that a [Finder] has found. It must be safe for
// concurrent use.
type Location interface {
	// Holder returns the holder of the rings.
	Holder() drain.Holder
	// Path returns the path of the directory when it was found.
	Path() string
	// OpenDir opens a directory at or below Path.
	OpenDir(name string) (*files.Dir, error)
	// Identify identifies the agent of a ring; see [Identify].
	Identify(a drain.Agent, r *ringbuf.Reader, since time.Time) (drain.Agent, Mapped)
	// HasRings reports whether agents may have rings in the directory, and not only
	// stores.
	HasRings() bool
	// IdentifyStore sets the ID and the resource of an agent from one of its processes.
	IdentifyStore(a drain.Agent, pid int64) drain.Agent
}

// WatcherConfig configures a [Watcher]. Config applies to each directory that the
// Finder finds, except for Dir, Identify and OpenDir.
type WatcherConfig struct {
	Config
	Finder   Finder
	Interval time.Duration // between searches
	// Searched receives the duration of each search; it may be nil.
	Searched func(took time.Duration)
}

// Watcher watches the directories that a [Finder] finds. It runs a [Directory] for
// each of them, so a directory that hangs delays no other.
type Watcher struct {
	cfg       WatcherConfig
	send      func(drain.Message)
	notices   *notice.Reporter
	refreshes chan func() // functions to call after the next search
	cancel    context.CancelFunc
	ended     chan struct{}

	mu      sync.Mutex
	watched map[string]*Directory // by the finder's key
	closing []*Directory          // removed directories whose rings aren't closed yet
	missing error
	refused map[string]Refusal // directories that exceed the limit
}

// NewWatcher returns a Watcher. It passes messages to send. Nothing is opened before
// Start.
func NewWatcher(cfg WatcherConfig, send func(drain.Message), notices *notice.Reporter) *Watcher {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.WalkEvery, cfg.Discovered = min(cfg.Interval, ProbeInterval), true
	return &Watcher{
		cfg: cfg, send: send, notices: notices,
		refreshes: make(chan func()), ended: make(chan struct{}), watched: make(map[string]*Directory),
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
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case afterwards := <-w.refreshes:
			w.search(ctx)
			afterwards()
		case <-timer.C:
			w.search(ctx)
			timer.Reset(w.cfg.Interval)
		}
	}
}

// search starts to watch new directories, and abandons removed ones.
func (w *Watcher) search(ctx context.Context) {
	began := w.cfg.Now()
	found, err := w.cfg.Finder.Find(began)
	if w.cfg.Searched != nil {
		w.cfg.Searched(w.cfg.Now().Sub(began))
	}
	if ctx.Err() != nil {
		return
	}
	w.reportSearch(err)
	if found != nil {
		w.update(found)
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
		if found[key] == nil {
			delete(w.watched, key)
			d.abandon()
			w.closing = append(w.closing, d)
		}
	}
	w.closing = slices.DeleteFunc(w.closing, func(d *Directory) bool { return d.worker.Stopped() })
}

// maxDirectories limits the directories of a container or pod that are watched.
const maxDirectories = 16

var errManyDirectories = fmt.Errorf("has more than %d directories of rings; remove what its agents don't need", maxDirectories)

// admit starts to watch a directory, unless its container already has too many.
func (w *Watcher) admit(key string, l Location, before map[string]Refusal) {
	h, same := l.Holder(), 0
	for _, d := range slices.AppendSeq(slices.Clone(w.closing), maps.Values(w.watched)) {
		if d.cfg.Holder == h {
			same++
		}
	}
	if !h.Isolated() || same < maxDirectories {
		w.add(key, l)
		return
	}
	err := fmt.Errorf("%v %w", h, errManyDirectories)
	w.refused[l.Path()] = Refusal{Reason: "budget", Err: err}
	if _, reported := before[l.Path()]; !reported {
		w.notices.Report(notice.Notice{
			Kind: notice.BudgetReached, Level: slog.LevelWarn, Path: w.cfg.Finder.Name(), Pod: h.Pod, Container: h.Container, Err: err,
			Text: "not all directories are watched, and the events in the others aren't counted",
		})
	}
}

// add starts to watch a directory.
func (w *Watcher) add(key string, l Location) {
	cfg := w.cfg.Config
	cfg.Dir, cfg.Identify, cfg.Holder, cfg.HasRings = l.Path(), l.Identify, l.Holder(), l.HasRings
	if cfg.Stores != nil {
		s := *cfg.Stores
		s.Identify = l.IdentifyStore
		cfg.Stores = &s
	}
	cfg.OpenDir = func(_, name string) (*files.Dir, error) { return l.OpenDir(name) }
	d, err := New(cfg, w.send, w.notices)
	if err != nil { // the path isn't absolute, and there is no working directory
		w.missing = err
		return
	}
	d.Start()
	w.watched[key] = d
}

// reportSearch reports when searches start to fail, and when they succeed again.
func (w *Watcher) reportSearch(err error) {
	w.mu.Lock()
	before := w.missing
	w.missing = err
	w.mu.Unlock()
	n := notice.Notice{Path: w.cfg.Finder.Name(), Level: slog.LevelWarn, Err: err}
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

// Refresh searches, refreshes all directories, searches for the processes of new rings, and then
// calls done. All messages about what it finds are sent before that.
func (w *Watcher) Refresh(done func()) {
	attribute := func() { w.each((*Directory).Attribute, done) }
	refresh := func() { w.each((*Directory).Refresh, func() { w.searchFirst(attribute, done) }) }
	w.searchFirst(refresh, done)
}

// searchFirst searches and then calls next, or calls done if the searches have ended.
func (w *Watcher) searchFirst(next, done func()) {
	go func() {
		select {
		case w.refreshes <- next:
		case <-w.ended:
			done()
		}
	}()
}

// Stores reads all stores, as [Directory.Stores] does. It may call add concurrently.
func (w *Watcher) Stores(add func([]drain.Snapshot), done func()) {
	w.each(func(d *Directory, done func()) { d.Stores(add, done) }, done)
}

// each calls fn for all directories. It calls done when all of them have called theirs.
func (w *Watcher) each(fn func(*Directory, func()), done func()) {
	all := w.directories(true)
	left := int64(len(all)) + 1
	one := func() {
		if atomic.AddInt64(&left, -1) == 0 {
			done()
		}
	}
	for _, d := range all {
		fn(d, one)
	}
	one()
}

// directories returns the watched directories. With all, it also returns the abandoned
// ones.
func (w *Watcher) directories(all bool) []*Directory {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Collect(maps.Values(w.watched))
	if all {
		list = append(list, w.closing...)
	}
	return list
}

// Cancel cancels the searches, for good. Open rings and stores stay open.
func (w *Watcher) Cancel() {
	w.cancel()
	for _, d := range w.directories(true) {
		d.Cancel()
	}
}

// Stop stops the searches, and closes the rings that the owner has returned, as
// [Directory.Stop] does.
func (w *Watcher) Stop(ctx context.Context) error {
	if w.cancel == nil {
		return nil
	}
	w.Cancel()
	var err error
	select {
	case <-w.ended:
	case <-ctx.Done():
		err = fmt.Errorf("stop discovering agents in %s: %w", w.cfg.Finder.Name(), ctx.Err())
	}
	all := w.directories(true)
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, d := range all {
		ends.Go(func() { errs[i] = d.Stop(ctx) })
	}
	ends.Wait()
	return errors.Join(err, errors.Join(errs...))
}

// State returns the state of all directories together. It never blocks.
func (w *Watcher) State() State {
	s := State{Refused: make(map[string]Refusal)}
	for _, d := range w.directories(true) {
		one := d.State()
		s.Open += one.Open
		maps.Copy(s.Refused, one.Refused)
		s.Missing = errors.Join(s.Missing, one.Missing)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Missing = errors.Join(s.Missing, w.missing)
	maps.Copy(s.Refused, w.refused)
	s.Directories = len(w.watched)
	return s
}
