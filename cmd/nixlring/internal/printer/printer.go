// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxPass bounds the number of events read from a ring before they are written.
const maxPass = 1 << 12

// Config configures a [Printer].
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

// Printer prints events.
type Printer struct {
	cfg   Config
	rings []*ring
	buf   []byte
	from  *ring // the ring of the last event
	shown uint64
	lost  int             // number of rings that couldn't be read
	timed bool            // the note about missing timestamps was printed
	noted map[string]bool // notes that were printed
}

// New returns a Printer. It opens no ring before Run.
func New(cfg Config) *Printer {
	p := &Printer{cfg: cfg, noted: make(map[string]bool), buf: []byte(cfg.Header)}
	for _, path := range cfg.Paths {
		p.rings = append(p.rings, &ring{path: path})
	}
	return p
}

// Run prints the events in the rings and, with Follow, further events until ctx is done. In
// consume mode, events are committed after they were written to Out. If a ring can't be
// read, Run continues with the others and returns an error at the end.
func (p *Printer) Run(ctx context.Context) error {
	err := p.start()
	if err == nil {
		err = p.run(ctx)
		p.sum()
	}
	for _, r := range p.rings {
		err = errors.Join(err, r.close())
	}
	if err == nil && p.lost > 0 {
		err = fmt.Errorf("%d of %d rings can't be read", p.lost, len(p.cfg.Paths))
	}
	return err
}

func (p *Printer) run(ctx context.Context) error {
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.pass(ctx); err != nil || !p.cfg.Follow {
		return err
	}
	return p.follow(ctx)
}

// start opens the rings and drops those that can't be opened. With Follow, it keeps rings that
// an agent is still initializing. It returns an error if no ring can be opened.
func (p *Printer) start() error {
	var errs []error
	var open []*ring
	for _, r := range p.rings {
		err := p.open(r)
		if waiting := p.cfg.Follow && errors.Is(err, ringbuf.ErrNotReady); err != nil && !waiting {
			errs = append(errs, patherr.Explain(patherr.Ring, r.path, err))
			continue
		}
		open = append(open, r)
	}
	if p.rings = open; len(open) == 0 {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		p.warn(err)
	}
	return nil
}

// warn reports a ring that can't be read.
func (p *Printer) warn(err error) {
	p.lost++
	p.cfg.Warn(err)
}

func (p *Printer) follow(ctx context.Context) error {
	ticker := time.NewTicker(p.cfg.Interval)
	defer ticker.Stop()
	for !p.enough() {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, r := range p.rings {
			if err := p.check(ctx, r); err != nil {
				return err
			}
		}
		if err := p.pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *Printer) enough() bool { return p.cfg.Count > 0 && p.shown >= p.cfg.Count }

// pass prints the pending events of each ring. Events that an agent adds in the meantime are
// printed by the next pass.
func (p *Printer) pass(ctx context.Context) error {
	for _, r := range p.rings {
		if err := p.drain(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (p *Printer) flush() error {
	if len(p.buf) == 0 {
		return nil
	}
	_, err := p.cfg.Out.Write(p.buf)
	p.buf = p.buf[:0]
	return err
}

// print formats the events that pass the filter.
func (p *Printer) print(r *ring, b ringbuf.Batch) {
	r.read += uint64(b.Len())
	now := p.cfg.Now()
	for i := range b.Len() {
		e := b.Event(i)
		shown := render.New(r.path, b.Layout(), &e, now)
		if !p.cfg.Filter.Match(&shown) {
			continue
		}
		if p.cfg.Headings && len(p.cfg.Paths) > 1 && p.from != r {
			p.buf = fmt.Appendf(p.buf, "==> %s <==\n\n", units.Printable(r.path))
		}
		p.from = r
		p.buf = p.cfg.Format(p.buf, &shown)
		p.shown++
	}
}

// note prints an error of a ring, but only once until a ring is opened again.
func (p *Printer) note(r *ring, err error) {
	text := err.Error()
	if !p.noted[r.path+"\x00"+text] {
		p.noted[r.path+"\x00"+text] = true
		fmt.Fprintf(p.cfg.Notes, "%s\n", text)
	}
}

// sum prints the number of events read and left, as NIXL's reader does.
func (p *Printer) sum() {
	var read uint64
	left := 0
	for _, r := range p.rings {
		read += r.read
		left += r.left()
	}
	rings := "ring"
	if len(p.rings) > 1 {
		rings = "rings"
	}
	filtered := ""
	if p.shown != read {
		filtered = fmt.Sprintf(" (%d shown)", p.shown)
	}
	fmt.Fprintf(p.cfg.Notes, "Total events read: %d%s\nLeft in the %s: %d events\n", read, filtered, rings, left)
}
