// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ring is the ring at one path, across restarts of its agent.
type ring struct {
	path   string
	reader *ringbuf.Reader // nil while the ring isn't open
	read   uint64          // number of events read
}

// open opens the ring, unless it is open.
func (p *Printer) open(r *ring) (err error) {
	if r.reader != nil {
		return nil
	}
	if r.reader, err = ringbuf.OpenReader(r.path, p.cfg.Mode); err != nil {
		return err
	}
	p.noted = make(map[string]bool)
	layout := r.reader.Layout()
	fmt.Fprintf(p.cfg.Notes, "%s: layout %v, capacity %d events, %s\n",
		units.Printable(r.path), layout, r.reader.Capacity(), doing[p.cfg.Mode])
	if layout != ringbuf.V1 && !p.timed {
		p.timed = true
		fmt.Fprintf(p.cfg.Notes, "Rings of layout v2 and later have no timestamps: times are when events were read.\n")
	}
	return nil
}

var doing = map[ringbuf.Mode]string{
	ringbuf.Observe: "observing",
	ringbuf.Consume: "consuming",
}

// drain prints the pending events of a ring and commits them. Events that the agent adds in
// the meantime are printed by the next pass.
func (p *Printer) drain(ctx context.Context, r *ring) error {
	for start := r.read; ctx.Err() == nil && !p.enough(); {
		if err := p.open(r); err != nil {
			if p.cfg.Follow {
				p.note(r, err)
			} else {
				p.warn(err)
			}
			return nil
		}
		before, capacity := r.read, uint64(r.reader.Capacity())
		_, err := r.reader.Read(p.limit(), func(b ringbuf.Batch) { p.print(r, b) })
		p.settle(r, err)
		if err := p.flush(); err != nil {
			return err
		}
		if r.reader != nil {
			p.settle(r, r.reader.Commit())
		}
		if r.read == before || r.read-start >= capacity {
			return nil
		}
	}
	return nil
}

// limit returns the maximum number of events to read, so that no more are read than printed.
func (p *Printer) limit() int {
	if p.cfg.Count == 0 {
		return maxPass
	}
	return int(min(maxPass, p.cfg.Count-p.shown))
}

// settle reports an error of an open ring and closes the ring, unless the error only means
// that events were missed. Later passes open the ring again: a restarting agent may not have
// rewritten the whole header yet, and a mixed header would make old events look new.
func (p *Printer) settle(r *ring, err error) {
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
func (p *Printer) check(ctx context.Context, r *ring) error {
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
		p.settle(r, fmt.Errorf("ring %s: the file was replaced by another one", r.path))
	case info.Size() < r.reader.Layout().FileSize(uint64(r.reader.Capacity())):
		p.settle(r, fmt.Errorf("ring %s: %w", r.path, ringbuf.ErrShrunk))
	}
	return nil
}

// left returns the number of events in the ring. It consumes nothing, but an observer must
// not read the ring afterwards.
func (r *ring) left() int {
	if r.reader == nil {
		return 0
	}
	n, err := r.reader.Read(1, func(ringbuf.Batch) {})
	if err != nil {
		return 0
	}
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
