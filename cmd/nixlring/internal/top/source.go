// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/host"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// procsInterval is the minimum time between two scans of /proc for users of the rings.
	procsInterval = 2 * time.Second
	// procsFactor limits the share of time that scans take: the time between two scans is at
	// least this factor times the duration of a scan. On large machines, a scan takes up to
	// a second.
	procsFactor = 3
	// warnFor is how long a warning is shown.
	warnFor = time.Minute
	// closeTimeout limits the time that Close waits for file systems.
	closeTimeout = 5 * time.Second
)

// SourceConfig configures a [Source].
type SourceConfig struct {
	Directory   string
	Include     []string // doublestar patterns
	Recursive   bool     // patterns also apply in subdirectories
	RunInterval time.Duration
	Now         func() time.Time // time of samples; defaults to time.Now
	Proc        string           // mount point of procfs; defaults to /proc
}

// Source takes samples of a directory. It isn't safe for concurrent use, except for
// [Source.Slowest].
type Source struct {
	cfg       SourceConfig
	host      *host.Host
	known     map[string]*known
	users     users
	transfers *transfers
	counted   time.Time // when the rings were last counted
	excluded  int       // number of rings that the patterns exclude

	mu      sync.Mutex // guards the fields below, which other goroutines set
	warning string
	warned  time.Time
}

// known is the state of an agent at the last sample.
type known struct {
	sampled bool // the agent was in a sample
	events  uint64
	wrote   time.Time // when events last changed
}

// NewSource returns a source. It returns an error if the configuration is invalid. It opens
// no ring before [Source.Start].
func NewSource(cfg SourceConfig) (*Source, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Proc == "" {
		cfg.Proc = "/proc"
	}
	s := &Source{
		cfg: cfg, known: make(map[string]*known), users: users{proc: procs.FS(cfg.Proc)},
		transfers: newTransfers(time.Now),
	}
	h, err := host.New(host.Config{
		Directories: []string{cfg.Directory}, Include: Patterns(cfg.Include, cfg.Recursive), Mode: ringbuf.Observe,
		RunInterval: cfg.RunInterval, Report: s.note, Tap: s.transfers.tap,
		Tally: tally.Config{
			Duration:   tally.HistogramConfig{Bounds: bounds},
			Size:       tally.HistogramConfig{Kind: tally.NoHistogram},
			Throughput: tally.HistogramConfig{Bounds: throughputBounds},
		},
	})
	if err != nil {
		return nil, err
	}
	s.host = h
	return s, nil
}

// Start starts observing. It reads the events that are already in the rings, which don't
// count as new.
func (s *Source) Start() error {
	if err := s.host.Start(nil); err != nil {
		return err
	}
	for _, snap := range s.collect() {
		s.known[snap.Path] = &known{}
		s.transfers.reset(snap.Path)
	}
	return nil
}

// Close closes the rings. It returns an error if a file system hangs.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.host.Stop(ctx)
}

func (s *Source) collect() []drain.Snapshot {
	c, err := s.host.Collect(context.Background(), false)
	if err != nil {
		return nil // the screen shows the error as a notice
	}
	s.host.Delivered(c) // so that the host forgets agents that exited
	return c.Snapshots
}

// Sample takes a sample. A new agent isn't in the sample that discovers it but in the next
// one. By then its ring was read, so old events don't look like a burst.
func (s *Source) Sample() Sample {
	now := s.cfg.Now()
	sample := Sample{At: now, Err: s.err(), Warning: s.lastWarning(now)}
	snapshots := s.collect()
	next := make(map[string]*known, len(snapshots))
	var attended []procs.Attended
	for i := range snapshots {
		snap := &snapshots[i]
		a := s.known[snap.Path]
		if a == nil {
			next[snap.Path] = &known{}
			s.transfers.reset(snap.Path) // old events don't count
			continue
		}
		next[snap.Path] = a
		sample.Agents = append(sample.Agents, read(snap))
		attended = append(attended, procs.Attended{Open: snap.Up == drain.UpYes, Known: snap.Up != drain.UpUnknown})
	}
	for path := range s.known {
		if next[path] == nil {
			s.transfers.reset(path)
		}
	}
	s.known = next
	if len(next) == 0 {
		sample.Excluded = s.countExcluded(now)
	}
	s.addUsers(now, sample.Agents, attended)
	return sample
}

// Slowest returns the slowest transfers of an agent in the last minute, slowest first. It is
// safe for concurrent use.
func (s *Source) Slowest(path string) []Transfer { return s.transfers.slowest(path) }

// err returns why the directory can't be read, with the same text as other commands.
func (s *Source) err() error {
	return place.Explain(place.Rings, s.cfg.Directory, s.host.State().Err())
}

// addUsers sets Lock and Alive of the agents. An agent that wrote recently is running, so
// /proc isn't read for it.
func (s *Source) addUsers(now time.Time, agents []Reading, attended []procs.Attended) {
	wrote := func(i int, within time.Duration) bool {
		at := s.known[agents[i].Path].wrote
		return !at.IsZero() && now.Sub(at) < within
	}
	for i := range agents {
		a := s.known[agents[i].Path]
		if events := agents[i].Totals.Events; !a.sampled || events != a.events {
			if a.sampled {
				a.wrote = now
			}
			a.sampled, a.events = true, events
		}
	}
	s.users.update(now, agents, func(i int) bool { return !wrote(i, procsInterval) && !attended[i].Settles() })
	for i := range agents {
		r := &agents[i]
		r.Lock = s.users.lock(r.Path)
		users := s.users.of[r.Path]
		// If it stopped writing, the next scan of /proc checks it.
		if !attended[i].Settles() && (wrote(i, procsInterval) || users == nil && wrote(i, 2*procsInterval)) {
			r.Alive = procs.Yes
		} else {
			r.Alive = users.Alive(attended[i])
		}
	}
}

// note keeps a warning for the next samples.
func (s *Source) note(n notice.Notice) {
	switch n.Kind {
	case notice.RingFull, notice.RingForeign, notice.DirectoryMissing: // in Row.Problems or Sample.Err
		return
	}
	if n.Level < slog.LevelWarn {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warning, s.warned = n.String(), s.cfg.Now()
}

func (s *Source) lastWarning(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.warned) > warnFor {
		return ""
	}
	return s.warning
}
