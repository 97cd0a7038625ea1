// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// RecordingConfig configures a [Recording].
type RecordingConfig struct {
	Path      string
	Include   []string         // valid doublestar patterns
	Recursive bool             // patterns also apply in subdirectories
	Now       func() time.Time // plays the recording by this clock; nil to play it with [Recording.Advance]
}

// Recording takes samples of a recording. It isn't safe for concurrent use, except for
// [Recording.Slowest].
type Recording struct {
	cfg       RecordingConfig
	in        *os.File
	file      *recording.Reader
	patterns  patterns
	shape     *tally.Shape
	transfers *transfers
	agents    []*recorded // by number

	began time.Time    // when playing began, by the clock
	at    time.Time    // position in the recording
	shown atomic.Int64 // at, in microseconds since the epoch, for Slowest
	next  recording.Record
	err   error // why there is no next record

	batch []ringbuf.Event // events of the agent from that aren't counted yet
	from  *recorded
}

// recorded is the state of an agent of a recording.
type recorded struct {
	about    *recording.About
	tally    *tally.Agent
	layout   ringbuf.Layout
	start    time.Time
	up       engine.Up
	excluded bool
}

// OpenRecording opens a recording.
func OpenRecording(cfg RecordingConfig) (*Recording, error) {
	shape, err := tally.NewShape(ownTally())
	if err != nil {
		return nil, err
	}
	in, err := os.Open(cfg.Path)
	if err != nil {
		return nil, patherr.Explain(patherr.Recording, cfg.Path, err)
	}
	file, err := recording.Open(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", cfg.Path, err), in.Close())
	}
	s := &Recording{cfg: cfg, in: in, file: file, patterns: Patterns(cfg.Include, cfg.Recursive), shape: shape, at: file.Header().Start}
	s.transfers = newTransfers(func() time.Time { return time.UnixMicro(s.shown.Load()) })
	// The agents that were there at the beginning are in the first sample.
	for s.read(); s.err == nil && s.next.State == recording.Opened; s.read() {
		s.apply(&s.next)
	}
	return s, nil
}

// Name implements [Source].
func (s *Recording) Name() string { return s.cfg.Path }

// Start implements [Source].
func (s *Recording) Start() error {
	if s.cfg.Now != nil {
		s.began = s.cfg.Now()
	}
	return nil
}

// Close implements [Source].
func (s *Recording) Close() error {
	s.file.Close()
	return s.in.Close()
}

// Slowest implements [Source].
func (s *Recording) Slowest(id string) []Transfer { return s.transfers.slowest(id) }

// Advance moves the position by a time, or to the next record if that is later. It reports
// false at the end of the recording, or if ctx is done.
func (s *Recording) Advance(ctx context.Context, by time.Duration) bool {
	if s.err == nil {
		to := s.at.Add(by)
		if s.next.At.After(to) {
			to = s.next.At
		}
		s.play(ctx, to)
	}
	return s.err == nil && ctx.Err() == nil
}

// Sample implements [Source].
func (s *Recording) Sample() Sample {
	if s.cfg.Now != nil {
		s.play(context.Background(), s.file.Header().Start.Add(s.cfg.Now().Sub(s.began)))
	}
	sample := Sample{At: s.at}
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		sample.Warning = s.err.Error()
	}
	for i, a := range s.agents {
		if a.excluded {
			sample.Excluded++
			continue
		}
		one := live.NewAgent(&engine.Snapshot{
			Agent: engine.Agent{ID: recordedID(i), Name: a.about.Name, Path: a.about.Path}, Layout: a.layout,
			Start: a.start, Up: a.up, Totals: a.tally.Look(),
		})
		one.Attributes = a.about.Attributes
		r := read(&one)
		r.Recorded = true
		sample.Agents = append(sample.Agents, r)
	}
	if len(sample.Agents) > 0 {
		sample.Excluded = 0
	}
	slices.SortFunc(sample.Agents, func(a, b Reading) int { return cmp.Compare(a.Path, b.Path) })
	return sample
}

// read reads the next record.
func (s *Recording) read() { s.err = s.file.Next(&s.next) }

// play counts the events up to a time. At the end of the recording, the position stays.
func (s *Recording) play(ctx context.Context, to time.Time) {
	for s.err == nil && !s.next.At.After(to) && ctx.Err() == nil {
		s.at = s.next.At
		s.shown.Store(s.at.UnixMicro())
		s.apply(&s.next)
		s.read()
	}
	s.count()
	if s.err == nil && to.After(s.at) {
		s.at = to
		s.shown.Store(s.at.UnixMicro())
	}
}

// apply applies a record to the totals of its agent.
func (s *Recording) apply(rec *recording.Record) {
	const most = 1 << 12 // events
	if rec.Agent == len(s.agents) {
		s.agents = append(s.agents, s.add(rec))
	}
	a := s.agents[rec.Agent]
	if a != s.from || rec.State != "" || len(s.batch) >= most {
		s.count()
		s.from = a
	}
	switch rec.State {
	case recording.Opened:
		if a.layout != 0 {
			a.tally.Restarted()
		}
		a.about, a.layout, a.up = rec.About, rec.Layout, engine.UpYes
		a.tally.Found(0, rec.Capacity)
	case recording.Missed:
		a.tally.Missed()
	case recording.Full:
		a.tally.Saturated()
	case recording.Closed:
		a.up = engine.UpNo
	default:
		s.batch = append(s.batch, rec.Event)
	}
}

// recordedID returns the ID of an agent. In a recording, two agents can have the same path.
func recordedID(number int) string { return strconv.Itoa(number) }

func (s *Recording) add(rec *recording.Record) *recorded {
	a := &recorded{tally: tally.NewAgent(s.shape), start: rec.At, excluded: !s.patterns.match(rec.About.Name)}
	agent := engine.Agent{ID: recordedID(rec.Agent)}
	a.tally.Watch(tally.Watch{Transfer: func(t *tally.Transfer) { s.transfers.add(&agent, t) }})
	return a
}

// count adds the events that were read to the totals of their agent.
func (s *Recording) count() {
	if len(s.batch) == 0 {
		return
	}
	if b, err := ringbuf.MakeBatch(s.from.layout, s.batch); err == nil { // a Reader returns only events of the layout
		s.from.tally.Add(b)
	}
	s.batch = s.batch[:0]
}
