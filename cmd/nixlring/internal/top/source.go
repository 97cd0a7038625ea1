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
	// lookEvery is how often at most it is found out who has the rings open.
	lookEvery = 2 * time.Second
	// lookShare is how much longer than a look at all processes the time until the
	// next one is. On a large machine a look takes up to a second.
	lookShare = 3
	// warnFor is how long a warning is shown.
	warnFor = time.Minute
	// closeTimeout is how long Close waits for file systems.
	closeTimeout = 5 * time.Second
)

// SourceConfig says what to observe.
type SourceConfig struct {
	Directory   string
	Include     []string // doublestar patterns
	Recursive   bool     // patterns also apply in subfolders
	RunInterval time.Duration
	Now         func() time.Time // of samples; time.Now if nil
	Proc        string           // where the kernel lists processes; /proc if empty
}

// Source takes samples of a directory. It isn't safe for concurrent use, except for
// [Source.Slowest].
type Source struct {
	cfg       SourceConfig
	host      *host.Host
	known     map[string]*acquaintance
	users     users
	transfers *transfers
	counted   time.Time // when the rings were last counted
	left      int       // rings that the patterns leave out

	mu      sync.Mutex // guards what follows; notices come from other goroutines
	warning string
	warned  time.Time
}

// acquaintance is what is known of an agent from the last sample.
type acquaintance struct {
	met    bool // it was in a sample
	events uint64
	wrote  time.Time // when events was last another number
}

// NewSource checks the configuration. Nothing is looked at before Start.
func NewSource(cfg SourceConfig) (*Source, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Proc == "" {
		cfg.Proc = "/proc"
	}
	s := &Source{
		cfg: cfg, known: make(map[string]*acquaintance), users: users{proc: procs.FS(cfg.Proc)},
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

// Start begins to observe. It waits until the rings that are there have been
// read: what stands in them now isn't new.
func (s *Source) Start() error {
	if err := s.host.Start(nil); err != nil {
		return err
	}
	for _, snap := range s.collect() {
		s.known[snap.Path] = &acquaintance{}
		s.transfers.reset(snap.Path)
	}
	return nil
}

// Close gives up the rings. The error is that of a file system that hangs.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.host.Stop(ctx)
}

func (s *Source) collect() []drain.Snapshot {
	c, err := s.host.Collect(context.Background(), false)
	if err != nil {
		return nil // why is a notice, which the screen shows
	}
	s.host.Delivered(c) // nothing waits for it, so agents that exited may be forgotten
	return c.Snapshots
}

// Sample returns how things stand. An agent appears in the sample after the one
// that found it: its ring has been read to the end by then, so that what had
// piled up in it doesn't look like a burst.
func (s *Source) Sample() Sample {
	now := s.cfg.Now()
	sample := Sample{At: now, Trouble: s.trouble(), Warning: s.lastWarning(now)}
	snapshots := s.collect()
	known := make(map[string]*acquaintance, len(snapshots))
	var attended []procs.Attended
	for i := range snapshots {
		snap := &snapshots[i]
		a := s.known[snap.Path]
		if a == nil {
			known[snap.Path] = &acquaintance{}
			s.transfers.reset(snap.Path) // what its ring held isn't new
			continue
		}
		known[snap.Path] = a
		sample.Agents = append(sample.Agents, read(snap))
		attended = append(attended, procs.Attended{Open: snap.Up == drain.UpYes, Known: snap.Up != drain.UpUnknown})
	}
	for path := range s.known {
		if known[path] == nil {
			s.transfers.reset(path)
		}
	}
	s.known = known
	if len(known) == 0 {
		sample.Left = s.countLeft(now)
	}
	s.lookWho(now, sample.Agents, attended)
	return sample
}

// Slowest returns the slowest transfers of an agent in the last minute, the slowest
// first. It is safe for concurrent use.
func (s *Source) Slowest(path string) []Transfer { return s.transfers.slowest(path) }

// trouble is what keeps agents from being seen, in the words of all commands.
func (s *Source) trouble() error {
	return place.Explain(place.Rings, s.cfg.Directory, s.host.State().Err())
}

// lookWho adds who has the rings open, which no ring tells by itself. An agent
// that has just written is alive, so its processes needn't be looked at.
func (s *Source) lookWho(now time.Time, agents []Reading, attended []procs.Attended) {
	wrote := func(i int, within time.Duration) bool {
		at := s.known[agents[i].Path].wrote
		return !at.IsZero() && now.Sub(at) < within
	}
	for i := range agents {
		a := s.known[agents[i].Path]
		if events := agents[i].Totals.Events; !a.met || events != a.events {
			if a.met {
				a.wrote = now
			}
			a.met, a.events = true, events
		}
	}
	s.users.look(now, agents, func(i int) bool { return !wrote(i, lookEvery) && !attended[i].Settles() })
	for i := range agents {
		r := &agents[i]
		r.Lock = s.users.lock(r.Path)
		users := s.users.of[r.Path]
		// One that has stopped writing is looked at by the next look, not at once.
		if !attended[i].Settles() && (wrote(i, lookEvery) || users == nil && wrote(i, 2*lookEvery)) {
			r.Alive = procs.Yes
		} else {
			r.Alive = users.Alive(attended[i])
		}
	}
}

// note keeps what is worth a line on the screen.
func (s *Source) note(n notice.Notice) {
	switch n.Kind {
	case notice.RingFull, notice.RingForeign, notice.DirectoryMissing: // a row or the trouble says it
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
