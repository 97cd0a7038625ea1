// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/follow"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxPass bounds the number of events read from a ring before they are written.
const maxPass = 1 << 12

// Config configures a [Show].
type Config struct {
	Paths    []string
	Mode     ringbuf.Mode
	Follow   bool          // continue until the context is done
	Interval time.Duration // between two polls, with Follow
	Count    uint64        // maximum number of events; 0 for no limit
	Filter   *render.Filter
	Format   func([]byte, *render.Event) []byte
	Header   string // before the first event
	Headings bool   // print the path of the ring before its events, if there are several rings
	Out      io.Writer
	Notes    io.Writer   // for everything except events
	Warn     func(error) // called for a ring that can't be read, if others can
	Now      func() time.Time
}

// Show prints events.
type Show struct {
	cfg   Config
	rings []*follow.Ring
	buf   []byte
	from  *follow.Ring // the ring of the last event
	shown uint64
	lost  int             // number of rings that couldn't be read
	timed bool            // the note about missing timestamps was printed
	noted map[string]bool // notes that were printed
}

// New returns a Show. It opens no ring before Run.
func New(cfg Config) *Show {
	s := &Show{cfg: cfg, noted: make(map[string]bool), buf: []byte(cfg.Header)}
	for _, path := range cfg.Paths {
		s.rings = append(s.rings, follow.NewRing(path, cfg.Mode, s))
	}
	return s
}

// Run prints the events in the rings and, with Follow, further events until ctx is done. In
// consume mode, events are committed after they were written to Out. If a ring can't be
// read, Run continues with the others and returns an error at the end.
func (s *Show) Run(ctx context.Context) error {
	err := s.open()
	if err == nil {
		err = s.run(ctx)
		s.sum()
	}
	for _, r := range s.rings {
		err = errors.Join(err, r.Close())
	}
	if err == nil && s.lost > 0 {
		err = fmt.Errorf("%d of %d rings can't be read", s.lost, len(s.cfg.Paths))
	}
	return err
}

func (s *Show) run(ctx context.Context) error {
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.pass(ctx); err != nil || !s.cfg.Follow {
		return err
	}
	return s.follow(ctx)
}

// open opens the rings and drops those that can't be opened. With Follow, it keeps rings that
// an agent is still initializing. It returns an error if no ring can be opened.
func (s *Show) open() error {
	var errs []error
	var open []*follow.Ring
	for _, r := range s.rings {
		err := r.Open()
		if waiting := s.cfg.Follow && errors.Is(err, ringbuf.ErrNotReady); err != nil && !waiting {
			errs = append(errs, place.Explain(place.Ring, r.Path(), err))
			continue
		}
		open = append(open, r)
	}
	if s.rings = open; len(open) == 0 {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		s.warn(err)
	}
	return nil
}

// warn reports a ring that can't be read.
func (s *Show) warn(err error) {
	s.lost++
	s.cfg.Warn(err)
}

func (s *Show) follow(ctx context.Context) error {
	ticker := time.NewTicker(s.cfg.Interval)
	defer ticker.Stop()
	for !s.enough() {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, r := range s.rings {
			if err := r.Check(); err != nil {
				s.note(r, err)
			}
		}
		if err := s.pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Show) enough() bool { return s.cfg.Count > 0 && s.shown >= s.cfg.Count }

// pass prints the pending events of each ring. Events that an agent adds in the meantime are
// printed by the next pass.
func (s *Show) pass(ctx context.Context) error {
	for _, r := range s.rings {
		if err := s.drain(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *Show) drain(ctx context.Context, r *follow.Ring) error {
	start := r.Read()
	for ctx.Err() == nil && !s.enough() {
		before := r.Read()
		if err := r.Poll(s.limit()); err != nil {
			if !s.cfg.Follow {
				s.warn(err)
				return s.flush()
			}
			s.note(r, err)
		}
		if err := s.flush(); err != nil {
			return err
		}
		if err := r.Commit(); err != nil {
			return err
		}
		if r.Read() == before || r.Read()-start >= uint64(r.Capacity()) {
			return nil
		}
	}
	return nil
}

// limit returns the maximum number of events to read, so that no more are read than printed.
func (s *Show) limit() int {
	if s.cfg.Count == 0 {
		return maxPass
	}
	return int(min(maxPass, s.cfg.Count-s.shown))
}

func (s *Show) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.cfg.Out.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// Opened implements [follow.Handler].
func (s *Show) Opened(r *follow.Ring) {
	s.noted = make(map[string]bool)
	fmt.Fprintf(s.cfg.Notes, "%s: layout %v, capacity %d events, %s\n",
		render.Printable(r.Path()), r.Layout(), r.Capacity(), doing[s.cfg.Mode])
	if r.Layout() != ringbuf.V1 && !s.timed {
		s.timed = true
		fmt.Fprintf(s.cfg.Notes, "Rings of layout v2 and later have no timestamps: times are when events were read.\n")
	}
}

var doing = map[ringbuf.Mode]string{
	ringbuf.Observe: "observing",
	ringbuf.Consume: "consuming",
}

// Events implements [follow.Handler].
func (s *Show) Events(r *follow.Ring, b ringbuf.Batch) {
	now := s.cfg.Now()
	for i := range b.Len() {
		e := b.Event(i)
		shown := render.New(r.Path(), b.Layout(), &e, now)
		if !s.cfg.Filter.Match(&shown) {
			continue
		}
		if s.cfg.Headings && len(s.cfg.Paths) > 1 && s.from != r {
			s.buf = fmt.Appendf(s.buf, "==> %s <==\n\n", render.Printable(r.Path()))
		}
		s.from = r
		s.buf = s.cfg.Format(s.buf, &shown)
		s.shown++
	}
}

// Missed implements [follow.Handler].
func (s *Show) Missed(r *follow.Ring, err error) { s.note(r, err) }

// Ended implements [follow.Handler].
func (s *Show) Ended(r *follow.Ring, err error) { s.note(r, err) }

// note prints an error of a ring, but only once until a ring is opened again.
func (s *Show) note(r *follow.Ring, err error) {
	text := err.Error()
	if !s.noted[r.Path()+"\x00"+text] {
		s.noted[r.Path()+"\x00"+text] = true
		fmt.Fprintf(s.cfg.Notes, "%s\n", text)
	}
}

// sum prints the number of events read and left, as NIXL's reader does.
func (s *Show) sum() {
	var read uint64
	left := 0
	for _, r := range s.rings {
		read += r.Read()
		left += r.Left()
	}
	rings := "ring"
	if len(s.rings) > 1 {
		rings = "rings"
	}
	filtered := ""
	if s.shown != read {
		filtered = fmt.Sprintf(" (%d shown)", s.shown)
	}
	fmt.Fprintf(s.cfg.Notes, "Total events read: %d%s\nLeft in the %s: %d events\n", read, filtered, rings, left)
}
