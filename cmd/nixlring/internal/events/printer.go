// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package events prints the events of rings, as NIXL's example readers do, but of all layouts, and by
// default without consuming them.
package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// maxRead bounds the number of events read from a ring before they are written.
	maxRead = 1 << 12
	// interval is the time between two polls.
	interval = 50 * time.Millisecond
)

// Config configures [Print].
type Config struct {
	Paths   []string
	Mode    ringbuf.Mode
	Follow  bool   // continue until the context is done
	Count   uint64 // maximum number of events; 0 for no limit
	Filter  *Filter
	Format  string // one of [Formats]
	Out     io.Writer
	Notes   io.Writer                          // for everything except events
	Explain func(path string, err error) error // adds advice to an error of opening a ring
	Now     func() time.Time
}

// Print prints the events in the rings and, with Follow, further events until ctx is done. In
// consume mode, events are committed after they were written to Out. If a ring can't be
// read, Print continues with the others and returns the error at the end.
func Print(ctx context.Context, cfg Config) error {
	p := &printer{Config: cfg}
	var open []*ring
	for _, path := range cfg.Paths {
		r := &ring{path: path}
		if err := p.open(r); err != nil && (!cfg.Follow || !errors.Is(err, ringbuf.ErrNotReady)) {
			p.errs = append(p.errs, cfg.Explain(path, err))
			continue
		}
		open = append(open, r)
	}
	if len(open) == 0 {
		return errors.Join(p.errs...)
	}
	if cfg.Follow {
		for _, err := range p.errs {
			fmt.Fprintln(cfg.Notes, err) // the end may be far away
		}
	}
	p.buf = append(p.buf, header(cfg.Format)...)
	p.errs = append(p.errs, p.run(ctx, open))
	p.sum(open)
	for _, r := range open {
		p.errs = append(p.errs, r.close())
	}
	return errors.Join(p.errs...)
}

type printer struct {
	Config
	buf   []byte
	last  *ring // the ring of the last event
	shown uint64
	timed bool // the note about missing timestamps was printed
	errs  []error
}

// ring is the ring at one path, across restarts of its agent.
type ring struct {
	path   string
	reader *ringbuf.Reader // nil while the ring isn't open
	read   uint64          // number of events read
	noted  string          // the last note, which isn't repeated
}

func (p *printer) run(ctx context.Context, rings []*ring) error {
	if err := p.flush(); err != nil {
		return err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		for _, r := range rings {
			if err := p.drain(ctx, r); err != nil {
				return err
			}
		}
		if !p.Follow || p.enough() {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, r := range rings {
			if err := p.check(ctx, r); err != nil {
				return err
			}
		}
	}
}

func (p *printer) enough() bool { return p.Count > 0 && p.shown >= p.Count }

// open opens the ring, unless it is open.
func (p *printer) open(r *ring) (err error) {
	if r.reader != nil {
		return nil
	}
	if r.reader, err = ringbuf.OpenReader(r.path, p.Mode); err != nil {
		return err
	}
	r.noted = ""
	doing := "observing"
	if p.Mode == ringbuf.Consume {
		doing = "consuming"
	}
	layout := r.reader.Layout()
	fmt.Fprintf(p.Notes, "%s: layout %v, capacity %d events, %s\n", units.Printable(r.path), layout, r.reader.Capacity(), doing)
	if layout != ringbuf.V1 && !p.timed {
		p.timed = true
		fmt.Fprintf(p.Notes, "Rings of layout v2 and later have no timestamps: times are when events were read.\n")
	}
	return nil
}

// drain prints the pending events of a ring and commits them. Events that the agent adds in
// the meantime are printed later.
func (p *printer) drain(ctx context.Context, r *ring) error {
	for start := r.read; ctx.Err() == nil && !p.enough(); {
		if err := p.open(r); err != nil {
			if !p.Follow {
				p.errs = append(p.errs, err)
			}
			p.note(r, err)
			return nil
		}
		before, capacity := r.read, uint64(r.reader.Capacity())
		limit := maxRead
		if p.Count > 0 {
			limit = int(min(maxRead, p.Count-p.shown))
		}
		_, err := r.reader.Read(limit, func(b ringbuf.Batch) { p.print(r, b) })
		p.report(r, err)
		if err := p.flush(); err != nil {
			return err
		}
		if r.reader != nil {
			p.report(r, r.reader.Commit())
		}
		if r.read == before || r.read-start >= capacity {
			return nil
		}
	}
	return nil
}

// report reports an error of an open ring and closes the ring, unless the error only means
// that events were missed. The ring is opened again later: a restarting agent may not have
// rewritten the whole header yet, and a mixed header would make old events look new.
func (p *printer) report(r *ring, err error) {
	if err == nil {
		return
	}
	if !errors.Is(err, ringbuf.ErrForeignRead) && !errors.Is(err, ringbuf.ErrLapped) {
		err = errors.Join(err, r.close())
	}
	p.note(r, err)
}

// check closes the ring if its file was replaced or truncated. If the file was only removed,
// the ring stays open, because its agent continues to write to it.
func (p *printer) check(ctx context.Context, r *ring) error {
	if r.reader == nil {
		return nil
	}
	info, err := os.Lstat(r.path)
	dev, ino := r.reader.ID()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		p.note(r, err)
	case files.IDOf(info) != files.ID{Dev: dev, Ino: ino}:
		if err := p.drain(ctx, r); err != nil { // the remaining events of the old file
			return err
		}
		p.report(r, fmt.Errorf("ring %s: the file was replaced by another one", r.path))
	case info.Size() < r.reader.Layout().FileSize(uint64(r.reader.Capacity())):
		p.report(r, fmt.Errorf("ring %s: %w", r.path, ringbuf.ErrShrunk))
	}
	return nil
}

// print formats the events that pass the filter.
func (p *printer) print(r *ring, b ringbuf.Batch) {
	r.read += uint64(b.Len())
	now := p.Now()
	for i := range b.Len() {
		e := b.Event(i)
		shown := newEvent(r.path, b.Layout(), &e, now)
		if !p.Filter.match(&shown) {
			continue
		}
		if p.Format == "text" && len(p.Paths) > 1 && p.last != r {
			p.buf = fmt.Appendf(p.buf, "==> %s <==\n\n", units.Printable(r.path))
		}
		p.last = r
		p.buf = shown.add(p.buf, p.Format)
		p.shown++
	}
}

func (p *printer) flush() error {
	if len(p.buf) == 0 {
		return nil
	}
	_, err := p.Out.Write(p.buf)
	p.buf = p.buf[:0]
	return err
}

// note prints an error of a ring, but not again until the ring was opened or has another one.
func (p *printer) note(r *ring, err error) {
	if text := err.Error(); text != r.noted {
		r.noted = text
		fmt.Fprintln(p.Notes, text)
	}
}

// sum prints the number of events read and left, as NIXL's reader does.
func (p *printer) sum(rings []*ring) {
	var read uint64
	left := 0
	for _, r := range rings {
		read += r.read
		left += r.left()
	}
	shown := ""
	if p.shown != read {
		shown = fmt.Sprintf(" (%d shown)", p.shown)
	}
	fmt.Fprintf(p.Notes, "Total events read: %d%s\nEvents left in the rings: %d\n", read, shown, left)
}

// left returns the number of events in the ring. It consumes nothing, but an observer must
// not read the ring afterwards.
func (r *ring) left() int {
	if r.reader == nil {
		return 0
	}
	n, _ := r.reader.Read(1, func(ringbuf.Batch) {}) // an error doesn't change the number
	return n
}

// close closes the ring. Further calls do nothing.
func (r *ring) close() error {
	if r.reader == nil {
		return nil
	}
	err := r.reader.Close()
	r.reader = nil
	return err
}
