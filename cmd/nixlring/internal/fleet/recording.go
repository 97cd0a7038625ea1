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
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Stdin is the path of a recording that comes from standard input.
const Stdin = "-"

// Recording returns the frames of a recording.
type Recording struct {
	cfg   Config
	name  string
	in    io.Reader
	file  *recording.Reader
	live  bool          // frames are due as they were recorded
	shift time.Duration // from the times of the frames to when they are due
	last  time.Time     // of the frame before

	next *diagnose.Frame // read ahead, to know which frame is the last one
	err  error           // why there is none
}

// OpenRecording opens the recording at a path, or in, for [Stdin]. With live, frames are due as they were recorded, otherwise
// at once.
func OpenRecording(path string, in io.Reader, cfg Config, live bool) (*Recording, error) {
	s := &Recording{cfg: cfg, name: units.Printable(path), in: in, live: live}
	if path == Stdin {
		s.name = "standard input"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return nil, patherr.Explain(patherr.Recording, path, err)
		}
		s.in = file
	}
	var err error
	if s.file, err = recording.NewReader(s.in); err == nil {
		if s.read(); s.next == nil && !errors.Is(s.err, io.EOF) {
			err = s.err
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", s.name, err), s.Close())
	}
	return s, nil
}

// Name implements [Source].
func (s *Recording) Name() string { return s.name }

// Close implements [Source].
func (s *Recording) Close() error {
	if s.file != nil {
		s.file.Close()
	}
	if file, ok := s.in.(*os.File); ok {
		return file.Close()
	}
	return nil
}

// Stretch doubles the time between two frames.
func (s *Recording) Stretch() { s.cfg.Interval *= 2 }

// Next implements [Source]. Frames that follow sooner than the interval are joined.
func (s *Recording) Next(ctx context.Context) (*diagnose.Frame, error) {
	f := s.next
	if f == nil {
		return nil, io.EOF
	}
	s.read()
	for s.next != nil && !s.live && !s.last.IsZero() && f.Time.Sub(s.last) < s.cfg.Interval {
		join(f, s.next)
		f = s.next
		s.read()
	}
	if s.next == nil && !errors.Is(s.err, io.EOF) {
		f.Notes = append(f.Notes, units.Printable(s.err.Error()))
	}
	switch {
	case s.last.IsZero():
		s.shift = s.cfg.Now().Sub(f.Time)
	case s.live && !wait(ctx, f.Time.Add(s.shift).Sub(s.cfg.Now())):
		return nil, ctx.Err()
	}
	s.last = f.Time
	return f, ctx.Err()
}

// read reads the next frame.
func (s *Recording) read() {
	if s.next, s.err = s.file.Next(); s.next != nil && len(s.cfg.Include) > 0 {
		s.next.Agents = slices.DeleteFunc(s.next.Agents, func(a diagnose.Agent) bool { return !included(s.cfg.Include, a.Name) })
	}
}

// join adds to a frame what only the frame before has.
func join(before, f *diagnose.Frame) {
	for i := range f.Agents {
		a := &f.Agents[i]
		b := before.Agent(a.ID)
		if b == nil {
			continue
		}
		a.Transfers = append(b.Transfers, a.Transfers...)
		if a.Ring != nil && b.Ring != nil {
			a.Ring.Peak = max(a.Ring.Peak, b.Ring.Peak)
		}
	}
}

// included reports whether patterns include an agent, whose name may begin with those of its pod and container.
func included(patterns []string, name string) bool {
	for {
		if slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) }) {
			return true
		}
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return false
		}
		name = rest
	}
}
