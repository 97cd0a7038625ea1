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

// maxPass bounds what is read from one ring before it is written.
const maxPass = 1 << 12

// Config says what to show.
type Config struct {
	Paths    []string
	Mode     ringbuf.Mode
	Follow   bool          // go on until the context ends
	Interval time.Duration // between two looks, if Follow
	Count    uint64        // events to show; 0 is no limit
	Filter   *render.Filter
	Format   func([]byte, *render.Event) []byte
	Header   string // before the first event
	Headings bool   // tell which ring events are from, where there are several
	Out      io.Writer
	Notes    io.Writer   // what isn't an event
	Warn     func(error) // told of a ring that can't be read, where others can
	Now      func() time.Time
}

// Show shows events.
type Show struct {
	cfg   Config
	rings []*follow.Ring
	buf   []byte
	from  *follow.Ring // the ring of the last event that was shown
	shown uint64
	lost  int             // rings that couldn't be read
	timed bool            // that there are no times was said
	told  map[string]bool // what was said, and is not to be said again
}

// New makes a show. Nothing is opened before Run.
func New(cfg Config) *Show {
	s := &Show{cfg: cfg, told: make(map[string]bool), buf: []byte(cfg.Header)}
	for _, path := range cfg.Paths {
		s.rings = append(s.rings, follow.NewRing(path, cfg.Mode, s))
	}
	return s
}

// Run shows what is in the rings, and with Follow what comes until ctx ends.
// Events are taken from a ring only after they were written. A ring that can't
// be read doesn't keep the others from being shown; there is an error at the
// end.
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
		err = fmt.Errorf("%d of %d rings couldn't be read", s.lost, len(s.cfg.Paths))
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

// open opens the rings, and gives up those that can't be. An agent that is
// about to make its ring is waited for. The error is that of all rings.
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

// warn tells of a ring that can't be read.
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

// pass shows what is pending in each ring. What an agent adds meanwhile is for
// the next pass.
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
			if !s.cfg.Follow { // it was open just now
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

// limit keeps a ring from being asked for more events than are to be shown.
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
	s.told = make(map[string]bool)
	fmt.Fprintf(s.cfg.Notes, "%s: layout %v, capacity %d events, %s\n",
		render.Printable(r.Path()), r.Layout(), r.Capacity(), doing[s.cfg.Mode])
	if r.Layout() != ringbuf.V1 && !s.timed {
		s.timed = true
		fmt.Fprintf(s.cfg.Notes, "Rings of layout v2 and later have no times: the times shown are those of reading.\n")
	}
}

var doing = map[ringbuf.Mode]string{
	ringbuf.Observe: "looking only",
	ringbuf.Consume: "taking events out",
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

// note says something about a ring, once until a ring is opened again.
func (s *Show) note(r *follow.Ring, err error) {
	text := err.Error()
	if !s.told[r.Path()+"\x00"+text] {
		s.told[r.Path()+"\x00"+text] = true
		fmt.Fprintf(s.cfg.Notes, "%s\n", text)
	}
}

// sum says at the end what NIXL's reader does: how many events were read, and
// how many are left.
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
