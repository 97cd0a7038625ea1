// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Recording returns the frames of a recording.
type Recording struct {
	cfg    Config
	live   bool // frames are due as they were recorded
	in     *os.File
	file   *recording.Reader
	shape  *tally.Shape
	agents []*recorded // by number

	due  time.Time // when the next frame is due; zero before the first one
	at   time.Time // position in the recording
	over bool      // its last frame was returned
	next recording.Record
	err  error // why there is no next record
}

// recorded is the state of an agent of a recording.
type recorded struct {
	about    *recording.About
	tally    *tally.Agent
	seen     transfers
	layout   ringbuf.Layout
	start    time.Time
	up       engine.Up
	full     bool // the ring, since its last event
	unread   bool // it was full in the last frame or at the beginning, and since, so it has no consumer
	excluded bool
}

// OpenRecording opens the recording at a path. With live, frames are due as they were recorded, otherwise at once.
func OpenRecording(path string, cfg Config, live bool) (*Recording, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	shape, err := tally.NewShape(ownTally())
	if err != nil {
		return nil, err
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, patherr.Explain(patherr.Recording, path, err)
	}
	file, err := recording.Open(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), in.Close())
	}
	s := &Recording{cfg: cfg, live: live, in: in, file: file, shape: shape, at: file.Header().Start}
	// The first frame has the agents that were there at the beginning, and what was in their rings. A recorder
	// opens and reads one ring after another.
	const beginning = 500 * time.Millisecond
	s.read()
	for first := s.next.At; s.err == nil && s.next.At.Sub(first) < beginning; s.read() {
		s.apply(&s.next)
	}
	for _, a := range s.agents {
		a.unread = a.full
	}
	return s, nil
}

// Name implements [Source].
func (s *Recording) Name() string { return units.Printable(s.in.Name()) }

// Close implements [Source].
func (s *Recording) Close() error {
	s.file.Close()
	return s.in.Close()
}

// Stretch doubles the time between two frames.
func (s *Recording) Stretch() { s.cfg.Interval *= 2 }

// Next implements [Source].
func (s *Recording) Next(ctx context.Context) (*diagnose.Frame, error) {
	switch {
	case s.over:
		return nil, io.EOF
	case s.due.IsZero():
		s.due = s.cfg.Now()
	default:
		s.due = s.due.Add(s.cfg.Interval)
		if s.live && !wait(ctx, s.due.Sub(s.cfg.Now())) {
			return nil, ctx.Err()
		}
		to := s.at.Add(s.cfg.Interval)
		if !s.live && s.err == nil && s.next.At.After(to) {
			to = s.next.At // skip a time without records, up to a second
		}
		s.play(to)
	}
	s.over = s.err != nil
	return s.frame(), nil
}

func (s *Recording) frame() *diagnose.Frame {
	f := &diagnose.Frame{Time: s.at, Agents: []diagnose.Agent{}}
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		f.Notes = append(f.Notes, units.Printable(s.err.Error()))
	}
	for i, a := range s.agents {
		if a.excluded {
			continue
		}
		one := newAgent(&engine.Snapshot{
			Agent: engine.Agent{ID: fmt.Sprintf("%06d", i), Name: a.about.Name, Path: a.about.Path}, Layout: a.layout, // two may have the same path
			Start: a.start, Up: a.up, Totals: a.tally.Snapshot(),
		}, &a.seen)
		one.Attributes = a.about.Attributes
		identify(&one)
		one.Ring.ConsumerUnknown, one.Transfers = !a.unread, a.seen.take(s.at)
		if a.full {
			one.Ring.Peak, a.unread = one.Ring.Capacity-1, true
		}
		f.Agents = append(f.Agents, one)
	}
	slices.SortFunc(f.Agents, func(a, b diagnose.Agent) int { return strings.Compare(a.ID, b.ID) })
	return f
}

// read reads the next record.
func (s *Recording) read() { s.err = s.file.Next(&s.next) }

// play counts the events up to a time. At the end of the recording, the position stays.
func (s *Recording) play(to time.Time) {
	for s.err == nil && !s.next.At.After(to) {
		s.at = s.next.At
		s.apply(&s.next)
		s.read()
	}
	if s.err == nil {
		s.at = to
	}
}

// apply applies a record to the totals of its agent.
func (s *Recording) apply(rec *recording.Record) {
	if rec.Agent < 0 { // only a time
		return
	}
	if rec.Agent == len(s.agents) {
		s.agents = append(s.agents, s.add(rec))
	}
	a := s.agents[rec.Agent]
	a.seen.at = rec.At
	switch rec.State {
	case recording.Opened:
		if a.layout != 0 {
			a.tally.Restarted()
		}
		a.about, a.layout, a.up, a.full, a.unread = rec.About, rec.Layout, engine.UpYes, false, false
		a.tally.Found(0, rec.Capacity)
	case recording.Missed:
		a.tally.Missed()
	case recording.Full:
		a.tally.Saturated()
		a.full = true
	case recording.Closed:
		a.up = engine.UpNo
	default:
		a.full, a.unread = false, false
		if b, err := ringbuf.MakeBatch(rec.Layout, rec.Events); err == nil { // a Reader returns only events of the layout
			a.tally.Add(b)
		}
	}
}

func (s *Recording) add(rec *recording.Record) *recorded {
	a := &recorded{tally: tally.NewAgent(s.shape), seen: transfers{slow: s.cfg.Slow, framed: true}, start: rec.At, excluded: !included(s.cfg.Include, rec.About.Name)}
	a.tally.Watch(tally.Watch{Transfer: func(t *tally.Transfer) { a.seen.add(t) }})
	return a
}

// included reports whether patterns include an agent.
func included(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}
