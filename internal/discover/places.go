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
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// DefaultInterval is how often containers are searched for.
const DefaultInterval = 5 * time.Second

// Finder finds directories of rings that come and go, such as those in
// containers. It may block.
type Finder interface {
	// Find returns all directories that exist now, by a key that identifies each,
	// or nil if nothing is known. Even if there is an error, it may have found most.
	Find(now time.Time) (map[string]Place, error)
	// Name says what the finder looks at, for messages.
	Name() string
}

// Place is a directory of rings that a [Finder] has found. It is safe for
// concurrent use.
type Place interface {
	// Path is where the directory is at the time.
	Path() string
	// OpenFolder opens a folder in the directory.
	OpenFolder(name string) (*ringbuf.Folder, error)
	// Identify adds what is known about the agent of a ring.
	Identify(drain.Agent, *ringbuf.Reader) drain.Agent
}

// PlacesConfig says how often a [Finder] is asked, and what is looked for in the
// directories that it finds; Dir, Identify and OpenFolder aren't used.
type PlacesConfig struct {
	Config
	Finder   Finder
	Interval time.Duration
	// Searched receives the duration of each search; it may be nil.
	Searched func(took time.Duration)
}

// Places watches the directories that a [Finder] finds, with a [Directory] for each:
// one that hangs delays no other.
type Places struct {
	cfg     PlacesConfig
	send    func(drain.Message)
	notices *notice.Reporter
	asked   chan func() // has what to do after the next search
	cancel  context.CancelFunc
	ended   chan struct{}

	mu      sync.Mutex
	watched map[string]*Directory // by the finder's key
	leaving []*Directory          // that have rings which aren't closed
	missing error
}

// NewPlaces returns a Places that sends what it finds. Nothing is opened before
// Start.
func NewPlaces(cfg PlacesConfig, send func(drain.Message), notices *notice.Reporter) *Places {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.WalkEvery, cfg.Discovered = min(cfg.Interval, ProbeInterval), true
	return &Places{
		cfg: cfg, send: send, notices: notices,
		asked: make(chan func()), ended: make(chan struct{}), watched: make(map[string]*Directory),
	}
}

// Start begins to search. It doesn't wait for the first search.
func (p *Places) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go p.run(ctx)
}

func (p *Places) run(ctx context.Context) {
	defer close(p.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case then := <-p.asked:
			p.search(ctx)
			then()
		case <-timer.C:
			p.search(ctx)
			timer.Reset(p.cfg.Interval)
		}
	}
}

// search begins to watch the directories that are new, and gives up those that are
// gone.
func (p *Places) search(ctx context.Context) {
	began := p.cfg.Now()
	found, err := p.cfg.Finder.Find(began)
	if p.cfg.Searched != nil {
		p.cfg.Searched(p.cfg.Now().Sub(began))
	}
	if ctx.Err() != nil {
		return
	}
	p.found(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, place := range found {
		if p.watched[key] == nil {
			p.watch(key, place)
		}
	}
	if found != nil {
		for key, d := range p.watched {
			if found[key] == nil {
				delete(p.watched, key)
				d.leave()
				p.leaving = append(p.leaving, d)
			}
		}
	}
	p.leaving = slices.DeleteFunc(p.leaving, func(d *Directory) bool { return d.worker.Ended() })
}

func (p *Places) watch(key string, place Place) {
	cfg := p.cfg.Config
	cfg.Dir, cfg.Identify = place.Path(), place.Identify
	cfg.OpenFolder = func(_, name string) (*ringbuf.Folder, error) { return place.OpenFolder(name) }
	d, err := New(cfg, p.send, p.notices)
	if err != nil { // the path isn't absolute, and there is no working directory
		p.missing = err
		return
	}
	d.Start()
	p.watched[key] = d
}

// found reports when the search fails, and when it works again.
func (p *Places) found(err error) {
	p.mu.Lock()
	before := p.missing
	p.missing = err
	p.mu.Unlock()
	n := notice.Notice{Path: p.cfg.Finder.Name(), Level: slog.LevelWarn, Err: err}
	switch {
	case err != nil && before == nil:
		n.Kind, n.Text = notice.DiscoveryFailed, "discovery of agents is incomplete"
	case err == nil && before != nil:
		n.Kind, n.Level, n.Text = notice.DiscoveryWorks, slog.LevelInfo, "discovery of agents is complete now"
	default:
		return
	}
	p.notices.Report(n)
}

// Look searches now, walks all directories, and then calls done. By then everything
// that was found was sent.
func (p *Places) Look(done func()) {
	walk := func() {
		all := p.directories(false)
		var left sync.WaitGroup
		left.Add(len(all))
		for _, d := range all {
			d.Look(left.Done)
		}
		go func() { // a directory may hang
			left.Wait()
			done()
		}()
	}
	go func() {
		select {
		case p.asked <- walk:
		case <-p.ended:
			done()
		}
	}()
}

// directories returns those that are watched, and if all is set those that are
// being given up.
func (p *Places) directories(all bool) []*Directory {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Collect(maps.Values(p.watched))
	if all {
		list = append(list, p.leaving...)
	}
	return list
}

// Stop ends the search and closes the rings that were given back, as
// [Directory.Stop] does.
func (p *Places) Stop(ctx context.Context) error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	var err error
	select {
	case <-p.ended:
	case <-ctx.Done():
		err = fmt.Errorf("stop discovering agents in %s: %w", p.cfg.Finder.Name(), ctx.Err())
	}
	all := p.directories(true)
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, d := range all {
		ends.Go(func() { errs[i] = d.Stop(ctx) })
	}
	ends.Wait()
	return errors.Join(err, errors.Join(errs...))
}

// State returns what was found. It never blocks.
func (p *Places) State() State {
	s := State{Refused: make(map[string]Refusal)}
	for _, d := range p.directories(true) {
		one := d.State()
		s.Open += one.Open
		maps.Copy(s.Refused, one.Refused)
		s.Missing = errors.Join(s.Missing, one.Missing)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Missing = errors.Join(s.Missing, p.missing)
	s.Directories = len(p.watched)
	return s
}
