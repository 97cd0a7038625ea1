// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/semconv"
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

// RingsConfig configures a [Rings].
type RingsConfig struct {
	Directory   string   // empty to discover agents
	Kubelet     string   // the directory of pods to discover them in; empty to discover those of all processes
	Include     []string // doublestar patterns
	Recursive   bool     // patterns also apply in subdirectories
	RunInterval time.Duration
	Now         func() time.Time // time of samples; defaults to time.Now
	Proc        string           // mount point of procfs; defaults to /proc
}

// Rings takes samples of the rings of a directory, or of all processes. It isn't safe for concurrent use, except for
// [Rings.Slowest].
type Rings struct {
	cfg       RingsConfig
	host      *engine.Engine
	known     map[string]*known
	users     users
	pods      pods
	scanner   *process.Scanner
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

	service string
	asked   bool // whether the agent's process was examined, so that service is known
}

// NewRings returns a source of samples. It returns an error if the configuration is invalid. It opens
// no ring before [Rings.Start].
func NewRings(cfg RingsConfig) (*Rings, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Proc == "" {
		cfg.Proc = "/proc"
	}
	s := &Rings{
		cfg: cfg, known: make(map[string]*known), users: users{proc: procs.FS(cfg.Proc)}, pods: pods{proc: cfg.Proc},
		scanner:   process.New(process.Config{Proc: cfg.Proc}),
		transfers: newTransfers(time.Now),
	}
	watched := cfg.Observe()
	watched.Report, watched.Stores = s.note, true
	watched.Tally = ownTally()
	h, err := engine.New(watched)
	if err != nil {
		return nil, err
	}
	h.Watch(s.transfers.watch())
	s.host = h
	return s, nil
}

// ownTally returns the configuration of totals with the bounds of this package.
func ownTally() tally.Config {
	return tally.Config{
		Duration:   tally.HistogramConfig{Bounds: bounds},
		Size:       tally.HistogramConfig{Bounds: sizeBounds},
		Throughput: tally.HistogramConfig{Bounds: throughputBounds},
	}
}

// Observe returns the configuration of an engine that observes the rings.
func (c *RingsConfig) Observe() engine.Config {
	watched := engine.Config{Include: Patterns(c.Include, c.Recursive), Observe: true, RunInterval: c.RunInterval}
	switch {
	case c.Directory != "":
		watched.Directories = []string{c.Directory}
		return watched
	case c.Kubelet != "":
		watched.Kubelet = &engine.Kubelet{Pods: c.Kubelet, Volumes: []string{"*"}}
		return watched
	}
	watched.Processes = &engine.Processes{
		Interval: engine.DefaultSearchInterval, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank},
		Attributes: engine.DefaultAttributes, Proc: c.Proc,
	}
	return watched
}

// Name implements [Source].
func (s *Rings) Name() string {
	switch {
	case s.cfg.Directory != "":
		return s.cfg.Directory
	case s.cfg.Kubelet != "":
		return "the pods of this node"
	}
	return "all processes"
}

// Start implements [Source]. It reads the events that are already in the rings, which don't
// count as new.
func (s *Rings) Start() error {
	if err := s.host.Start(nil); err != nil {
		return err
	}
	snapshots, _ := s.collect() // the first sample reports the error
	for _, snap := range snapshots {
		s.known[snap.ID] = &known{}
		s.transfers.reset(snap.ID)
	}
	return nil
}

// Close implements [Source]. It returns an error if a file system hangs.
func (s *Rings) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.host.Stop(ctx)
}

func (s *Rings) collect() ([]engine.Snapshot, error) {
	c, err := s.host.Collect(context.Background(), false)
	if err != nil {
		return nil, err
	}
	s.host.Delivered(c) // so that the host forgets agents that exited
	return c.Snapshots, nil
}

// Sample implements [Source]. A new agent isn't in the sample that discovers it but in the next
// one. By then its ring was read, so old events don't look like a burst.
func (s *Rings) Sample() Sample {
	now := s.cfg.Now()
	sample := Sample{At: now, Err: s.err(), Warning: s.lastWarning(now)}
	snapshots, err := s.collect()
	if err != nil {
		sample.Failed = err
		return sample
	}
	next := make(map[string]*known, len(snapshots))
	var attended []procs.Attended
	for i := range snapshots {
		snap := &snapshots[i]
		a := s.known[snap.ID]
		if a == nil {
			next[snap.ID] = &known{}
			s.transfers.reset(snap.ID) // old events don't count
			continue
		}
		next[snap.ID] = a
		agent := live.NewAgent(snap)
		s.pods.name(&agent, now)
		sample.Agents = append(sample.Agents, read(&agent))
		attended = append(attended, procs.Attended{Open: snap.Up == engine.UpYes, Known: snap.Up != engine.UpUnknown})
	}
	for id := range s.known {
		if next[id] == nil {
			s.transfers.reset(id)
		}
	}
	s.known = next
	if len(next) == 0 {
		sample.Excluded = s.countExcluded(now)
	}
	sample.Unseen = s.addUsers(now, sample.Agents, attended)
	if slices.ContainsFunc(sample.Agents, func(r Reading) bool { return r.Lock.Unknown }) {
		sample.Warning = cmp.Or(sample.Warning, procs.ManyLocks)
	}
	return sample
}

// Slowest implements [Source].
func (s *Rings) Slowest(id string) []Transfer { return s.transfers.slowest(id) }

// err returns why the directory can't be read, with the same text as other commands.
func (s *Rings) err() error {
	if s.cfg.Kubelet != "" {
		return patherr.Explain(patherr.Pods, s.cfg.Kubelet, s.host.State().Err())
	}
	return patherr.Explain(patherr.Rings, s.cfg.Directory, s.host.State().Err())
}

// addUsers sets Lock and Alive of the agents. An agent that wrote recently is running, so
// /proc isn't read for it. If the state of an agent is unknown, addUsers returns which processes can't be
// inspected.
func (s *Rings) addUsers(now time.Time, agents []Reading, attended []procs.Attended) (unseen string) {
	wrote := func(i int, within time.Duration) bool {
		at := s.known[agents[i].ID].wrote
		return !at.IsZero() && now.Sub(at) < within
	}
	for i := range agents {
		a := s.known[agents[i].ID]
		if events := agents[i].Totals.Events; !a.sampled || events != a.events {
			if a.sampled {
				a.wrote = now
			}
			a.sampled, a.events = true, events
		}
	}
	s.users.update(now, agents, func(i int) bool {
		return !agents[i].Store && !attended[i].Settles() && (!wrote(i, procsInterval) || !s.known[agents[i].ID].asked)
	})
	s.addServices(agents)
	for i := range agents {
		r := &agents[i]
		if r.Store {
			continue
		}
		r.Lock = s.users.lock(r.Path)
		users := s.users.of[r.Path]
		// If it stopped writing, the next scan of /proc checks it.
		if !attended[i].Settles() && (wrote(i, procsInterval) || users == nil && wrote(i, 2*procsInterval)) {
			r.Alive = procs.Yes
		} else {
			r.Alive = users.Alive(attended[i])
		}
		if r.Alive == procs.Unknown && users != nil {
			unseen = users.Unseen()
		}
	}
	return unseen
}

// addServices sets Service of the agents. An agent's process is examined once.
func (s *Rings) addServices(agents []Reading) {
	for i := range agents {
		r := &agents[i]
		if r.Service != "" {
			continue
		}
		a := s.known[r.ID]
		if users := s.users.of[r.Path]; !a.asked && users != nil {
			a.asked = true
			a.service = s.service(users.Writers())
		}
		r.Service = a.service
	}
}

// service returns the service.name of the first of some processes that has one. It doesn't wait for
// processes that hang.
func (s *Rings) service(list []procs.Process) string {
	const patience = time.Second
	found := make(chan string, 1)
	go func() {
		for _, q := range list {
			if p, err := s.scanner.Examine(q.PID); err == nil && p.Attributes[semconv.ServiceName] != "" {
				found <- p.Attributes[semconv.ServiceName]
				return
			}
		}
		found <- ""
	}()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case name := <-found:
		return name
	case <-timeout.C:
		return ""
	}
}

// note keeps a warning for the next samples.
func (s *Rings) note(n notice.Notice) {
	switch n.Kind {
	case notice.RingFull, notice.RingForeign, notice.DirectoryMissing: // in Row.Problems or Sample.Err
		return
	case notice.DirectoryOnDisk: // a concern of consumers
		return
	}
	if n.Level < slog.LevelWarn {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warning, s.warned = n.String(), s.cfg.Now()
}

func (s *Rings) lastWarning(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.warned) > warnFor {
		return ""
	}
	return s.warning
}
