// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	searchInterval = 2 * time.Second // between two searches for consumers
	warnFor        = time.Minute     // how long a warning is shown
	closeTimeout   = 5 * time.Second // for file systems that hang
)

// Rings returns frames of the rings of a directory, of pods or of all processes.
type Rings struct {
	cfg   Config
	shape *tally.Shape
	host  *engine.Engine
	pods  pods

	started bool
	due     time.Time                     // when the next frame is due
	holders map[string]*diagnose.Consumer // the processes that hold locks, by file
	partial bool                          // there may be more locks
	search  time.Time                     // when locks were searched for

	linked time.Time // when the counters of links were read

	scanner   *process.Scanner // finds the processes of agents, if the kernel doesn't know whether they run
	processes []process.Process
	unseen    bool      // there may be more processes
	scanned   time.Time // when they were found

	mu      sync.Mutex          // guards the fields below, which the engine's goroutine sets
	known   map[string]*watched // by ID
	warning string
	warned  time.Time // when the warning was first in a frame
}

// watched is the state of an agent between two frames.
type watched struct {
	transfers

	found, fresh bool // it was discovered, and just before the next frame
	events       uint64
	wrote        time.Time // when events last changed

	before     uint64            // see [diagnose.Agent]
	remembered [2]diagnose.Moved // likewise
}

// remember computes what the ring remembers, once.
func (r *watched) remember() {
	if r.lap == nil {
		return
	}
	r.before = uint64(len(r.lap))
	for i := range r.lap[:len(r.lap)/2] {
		t := &r.lap[i]
		m := &r.remembered[t.Direction]
		m.Bytes, m.Transfers, m.Seconds = m.Bytes+t.Bytes, m.Transfers+1, m.Seconds+seconds(t.Duration)
	}
	r.lap = nil
}

// NewRings returns a source. The error says what is wrong with the configuration. No ring is opened before
// the first frame.
func NewRings(cfg Config) (*Rings, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Proc == "" {
		cfg.Proc = "/proc"
	}
	s := &Rings{cfg: cfg, known: make(map[string]*watched), pods: pods{proc: cfg.Proc}, scanner: process.New(process.Config{Proc: cfg.Proc})}
	host, errHost := engine.New(s.engine())
	shape, errShape := tally.NewShape(ownTally())
	if err := errors.Join(errHost, errShape); err != nil {
		return nil, err
	}
	s.host, s.shape = host, shape
	return s, nil
}

// engine returns the configuration of an engine that observes the rings.
func (s *Rings) engine() engine.Config {
	c := &s.cfg
	observe := engine.Config{
		Include: c.Include, Observe: true, RunInterval: c.RunInterval, Report: s.note, Stores: true, Tally: ownTally(),
		Handler: engine.Handler{Transfer: s.transferred},
	}
	switch {
	case c.Directory != "":
		observe.Directories = []string{c.Directory}
	case c.Kubelet != "":
		observe.Kubelet = &engine.Kubelet{Pods: c.Kubelet}
	default:
		observe.Processes = &engine.Processes{
			Interval: engine.DefaultSearchInterval, Attributes: engine.DefaultAttributes, Proc: c.Proc,
		}
	}
	return observe
}

// Name implements [Source].
func (s *Rings) Name() string {
	switch {
	case s.cfg.Directory != "":
		return units.Printable(s.cfg.Directory)
	case s.cfg.Kubelet != "":
		return "the pods of this node"
	}
	return "the processes of this host"
}

// Close implements [Source]. It returns an error if a file system hangs.
func (s *Rings) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.host.Stop(ctx)
}

// Next implements [Source]. A new agent isn't in the frame that discovers it but in the next one. By then its
// ring was read, so old events don't look like a burst.
func (s *Rings) Next(ctx context.Context) (*diagnose.Frame, error) {
	if !s.started {
		if err := s.host.Start(nil); err != nil {
			return nil, err
		}
		s.started = true
		snapshots, _ := s.collect(ctx) // an error occurs again below
		s.find(snapshots, false)
	} else if !wait(ctx, s.due.Sub(s.cfg.Now())) {
		return nil, ctx.Err()
	}
	now := s.cfg.Now()
	if s.due = s.due.Add(s.cfg.Interval); s.due.Before(now) {
		s.due = now.Add(s.cfg.Interval)
	}
	snapshots, err := s.collect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.err(); err != nil && len(snapshots) == 0 {
		return nil, err
	}
	s.find(snapshots, true)
	return s.frame(now, snapshots), nil
}

// find adds the transfers that their rings remember to the agents that were just discovered.
func (s *Rings) find(snapshots []engine.Snapshot, fresh bool) {
	for i := range snapshots {
		snap := &snapshots[i]
		s.mu.Lock()
		r := s.agent(snap.ID)
		s.mu.Unlock()
		if r.found {
			continue
		}
		r.found, r.fresh = true, fresh
		lap := s.recall(snap)
		s.mu.Lock()
		r.lap = append(lap, r.lap...)
		s.mu.Unlock()
	}
}

// recall returns the transfers in a ring that were consumed.
func (s *Rings) recall(snap *engine.Snapshot) (lap []tally.Transfer) {
	if snap.Store || snap.Up == engine.UpNo {
		return nil
	}
	once := tally.NewAgent(s.shape)
	once.Watch(tally.Watch{Transfer: func(t *tally.Transfer) { lap = append(lap, *t) }})
	_ = recall(snap.Path, func(b ringbuf.Batch) { once.Add(b) }) // the engine reports what is wrong with the ring
	return lap
}

// agent returns the state of an agent. The caller holds the lock.
func (s *Rings) agent(id string) *watched {
	r := s.known[id]
	if r == nil {
		r = &watched{transfers: transfers{limit: s.cfg.Slow}}
		s.known[id] = r
	}
	return r
}

func (s *Rings) collect(ctx context.Context) ([]engine.Snapshot, error) {
	c, err := s.host.Collect(ctx, false)
	if err != nil {
		return nil, err
	}
	s.host.Delivered(c) // so that the engine forgets agents that exited
	return c.Snapshots, nil
}

func (s *Rings) frame(now time.Time, snapshots []engine.Snapshot) *diagnose.Frame {
	f := &diagnose.Frame{Time: now, Agents: []diagnose.Agent{}}
	if now.Sub(s.linked) >= linksInterval {
		f.Links, s.linked = links(s.cfg.Proc), now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.search.IsZero() || now.Sub(s.search) >= searchInterval {
		s.search = now
		locks, all := ringfile.LockHolders(filepath.Join(s.cfg.Proc, "locks"))
		s.holders, s.partial = make(map[string]*diagnose.Consumer), !all
		for file, pid := range locks {
			s.holders[file] = &diagnose.Consumer{PID: pid, Name: units.Printable(ringfile.Program(filepath.Join(s.cfg.Proc, strconv.Itoa(pid))))}
		}
	}
	next := make(map[string]*watched, len(snapshots))
	for i := range snapshots {
		snap := &snapshots[i]
		r := s.known[snap.ID]
		if next[snap.ID] = r; r.fresh {
			r.fresh = false
			continue
		}
		a := newAgent(snap, &r.transfers)
		s.pods.name(&a, now)
		identify(&a)
		r.remember()
		a.Before, a.Remembered = r.before, r.remembered
		s.observe(&a, r, now)
		a.Transfers = r.take(now)
		a.ID, a.Path = units.Text(a.ID), units.Text(a.Path) // for JSON
		f.Agents = append(f.Agents, a)
	}
	s.known = next
	slices.SortFunc(f.Agents, func(a, b diagnose.Agent) int { return strings.Compare(a.ID, b.ID) })
	if s.partial {
		f.Notes = append(f.Notes, "the processes that consume rings are unknown: the list of locks can't be read, or is too long")
	}
	if s.warned.IsZero() {
		s.warned = now
	}
	if s.warning != "" && now.Sub(s.warned) < warnFor {
		f.Notes = append(f.Notes, s.warning)
	}
	return f
}

// observe sets the ring's consumer, and whether the agent runs. The kernel knows only whether any process has
// the ring open for writing, and the consumer has.
func (s *Rings) observe(a *diagnose.Agent, r *watched, now time.Time) {
	if a.Ring == nil {
		return
	}
	if r.framed && a.Events != r.events {
		r.wrote = now
	}
	r.events = a.Events
	var id files.ID
	if info, err := os.Lstat(a.Path); err == nil {
		id = files.IDOf(info)
		a.Ring.Consumer = s.holders[ringfile.LockKey(id)]
	}
	a.Ring.ConsumerUnknown = a.Ring.Consumer == nil && s.partial
	switch {
	case !r.wrote.IsZero() && now.Sub(r.wrote) < 2*searchInterval:
		a.Up = diagnose.Yes
	case a.Up == diagnose.Yes && a.Ring.Consumer != nil && (s.cfg.Directory != "" || s.cfg.Kubelet != ""):
		a.Up = s.mapped(id, a.Ring.Consumer.PID, now)
	}
}

// mapped returns whether a process other than the consumer has a ring mapped for writing.
func (s *Rings) mapped(ring files.ID, consumer int, now time.Time) diagnose.Up {
	if !ringfile.Everywhere(s.cfg.Proc) {
		return diagnose.Unknown
	}
	if s.scanned.IsZero() || now.Sub(s.scanned) >= searchInterval {
		found, err := s.scanner.Scan(now, false)
		s.processes, s.unseen, s.scanned = found, err != nil, now
	}
	for i := range s.processes {
		p := &s.processes[i]
		if p.PID != consumer && p.Maps(ring) {
			return diagnose.Yes
		}
	}
	if s.unseen {
		return diagnose.Unknown
	}
	return diagnose.No
}

// err returns why agents can't be found, with the same text as other commands.
func (s *Rings) err() error {
	state := s.host.State()
	switch err := state.Err(); {
	case s.cfg.Kubelet != "":
		return patherr.Explain(patherr.Pods, s.cfg.Kubelet, err)
	case s.cfg.Directory != "":
		return patherr.Explain(patherr.Rings, s.cfg.Directory, err)
	case len(state.Missing) > 0: // directories that don't exist, and processes that can't be examined
		missing := slices.Clone(state.Missing)
		for i, err := range missing {
			if at := (*fs.PathError)(nil); errors.As(err, &at) && errors.Is(err, fs.ErrNotExist) && at.Path != s.cfg.Proc {
				missing[i] = patherr.Explain(patherr.Rings, at.Path, err)
			}
		}
		return errors.Join(missing...)
	default:
		return err
	}
}

// transferred receives each transfer of all agents.
func (s *Rings) transferred(a *engine.Agent, t *tally.Transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent(a.ID).add(t)
}

// note keeps a warning for the next frames.
func (s *Rings) note(n notice.Notice) {
	switch n.Kind {
	case notice.RingFull, notice.RingForeign: // findings
		return
	case notice.DirectoryMissing:
		if s.cfg.Directory != "" { // an error
			return
		}
	case notice.DirectoryOnDisk: // a concern of consumers
		return
	}
	if n.Level < slog.LevelWarn {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warning, s.warned = units.Printable(n.String()), time.Time{}
}
