// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// openRing opens the ring of a path, identifies its agent, and offers it to the owner.
func (d *Directory) openRing(f *files.Dir, r *record, info files.Info) error {
	mode := ringbuf.Consume
	if d.cfg.Observe {
		mode = ringbuf.Observe
	}
	ring, err := ringbuf.OpenReaderWith(r.Path, mode, func(flag int) (*os.File, error) {
		return f.OpenFile(filepath.Base(r.Path), flag, d.cfg.AllowedUIDs...)
	})
	if errors.Is(err, ringbuf.ErrLocked) { // maybe by another directory of this process, which the owner knows
		return d.offer(drain.Opened{Agent: r.Agent, File: info.ID, Locked: err})
	}
	if err != nil {
		return err
	}
	exited := upOf(ring) == drain.UpNo && ring.Idle()
	agent, err := d.identify(r, ring)
	if err == nil {
		err = d.ctx.Err()
	}
	if err == nil {
		err = d.offer(drain.Opened{Agent: agent, Reader: ring, File: idOf(ring), Exited: exited})
	}
	if err != nil {
		return errors.Join(err, ring.Close())
	}
	d.setState(r, open)
	r.Agent, r.ring, r.info, r.up = agent, ring, info, drain.UpUnknown
	d.open.Add(1)
	if !exited {
		d.reportDisk(f)
	}
	d.probe(r)
	return nil
}

// offer offers a ring to the owner, and waits for the answer. It returns why the owner doesn't keep the ring.
func (d *Directory) offer(m drain.Opened) error {
	m.From = d
	began, busy := d.cfg.Now(), d.busy.Swap(nil) // this isn't the time of the file system
	d.send(m)
	err := <-d.answer
	d.busy.Store(busy)
	d.waited += d.cfg.Now().Sub(began)
	return err
}

// Answer implements [drain.Source].
func (d *Directory) Answer(_ drain.Agent, _ *ringbuf.Reader, refused error) { d.answer <- refused }

// identify identifies the agent of a ring.
func (d *Directory) identify(r *record, ring *ringbuf.Reader) (drain.Agent, error) {
	if !r.Unattributed {
		r.sought = time.Now()
	}
	a, _ := d.at.identify(r.Agent, ring, r.sought)
	a.Unattributed = a.Unattributed && !d.stopped && (a.ID == "" || upOf(ring) != drain.UpNo)
	r.Unattributed = a.Unattributed
	d.seeking = d.seeking || a.Unattributed
	if a.ID == "" {
		return a, errSeeking
	}
	return d.cfg.Resource.describe(a), nil
}

// attribute sends what is known about the agents whose processes were sought.
func (d *Directory) attribute() {
	if !d.seeking {
		return
	}
	d.seeking = false
	for _, r := range d.records {
		switch {
		case d.ctx.Err() != nil:
			return
		case r.Unattributed && r.ring == nil && r.state == refused:
			r.until = d.cfg.Now()
			d.checkPath(r)
		case r.Unattributed && r.ring != nil:
			agent, err := d.identify(r, r.ring)
			if err == nil && !r.Unattributed {
				agent.ID = r.ID
				r.Agent = agent
				d.send(drain.Attributed{Agent: r.Agent, Reader: r.ring})
				d.probe(r)
			}
		}
	}
}

// reportDisk reports if rings of this directory are on a disk.
func (d *Directory) reportDisk(f *files.Dir) {
	if !f.OnDisk() {
		return
	}
	d.report(notice.Notice{
		Kind: notice.DirectoryOnDisk, Level: slog.LevelWarn, Path: d.at.Path,
		Text: "rings are on a disk, and no ring is drained while it is frozen or fails; set NIXL_TELEMETRY_DIR to tmpfs, such as /dev/shm",
	})
}

// Directory implements [drain.Source].

// Close implements [drain.Source].
func (d *Directory) Close(r *ringbuf.Reader) {
	if r != nil {
		d.call(r, func() { d.returned(r) })
	}
}

// Reopen implements [drain.Source].
func (d *Directory) Reopen(a drain.Agent, r *ringbuf.Reader) { d.call(r, func() { d.reopen(a, r) }) }

// Retire implements [drain.Source].
func (d *Directory) Retire(_ drain.Agent, r *ringbuf.Reader) { d.Close(r) }

// call runs fn, which closes a ring, on the directory's goroutine. If that has ended, it only closes the ring.
func (d *Directory) call(r *ringbuf.Reader, fn func()) {
	if !d.calls.Put(fn) {
		go d.closeRing(r)
	}
}

// take closes a ring that the owner has returned. It returns the record of its path if this
// is the path's newest ring, and nil otherwise.
func (d *Directory) take(path string, ring *ringbuf.Reader) *record {
	d.closeRing(ring)
	r := d.records[path]
	if r == nil || r.ring != ring {
		return nil
	}
	r.ring = nil
	return r
}

// closeRing closes a ring.
func (d *Directory) closeRing(ring *ringbuf.Reader) {
	if ring != nil {
		_ = ring.Close() // an error has no consequences: nothing was written
		d.open.Add(-1)
	}
}

// returned closes a ring whose file isn't opened until it differs from what is known about it, or
// the owner asks to reopen it.
func (d *Directory) returned(ring *ringbuf.Reader) {
	if r := d.take(ring.Path(), ring); r != nil && r.state == open {
		d.setState(r, refused)
		r.until = time.Time{}
		r.forget()
	}
}

// reopen closes a ring and opens the path's file again, unless the path already has
// a newer ring.
func (d *Directory) reopen(a drain.Agent, ring *ringbuf.Reader) {
	r := d.take(a.Path, ring)
	if r == nil || d.stopped {
		return
	}
	r.info = files.Info{}
	r.forget()
	d.checkPath(r)
}
