// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
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
		_, err := d.offer(drain.Offer{Agent: r.Agent, File: info.ID, Locked: err})
		return err
	}
	if err != nil {
		return err
	}
	exited := upOf(ring) == drain.UpNo && ring.Idle()
	agent := d.identify(r, idOf(ring))
	if err = d.ctx.Err(); err == nil {
		agent, err = d.offer(drain.Offer{Agent: agent, Reader: ring, File: idOf(ring), Exited: exited})
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

// answer is the answer of the owner to an offer.
type answer struct {
	agent   drain.Agent
	refused error
}

// offer offers a ring to the owner, and waits for the answer: the agent as the owner keeps it, or why the owner
// doesn't keep the ring.
func (d *Directory) offer(m drain.Offer) (drain.Agent, error) {
	m.From = d
	began, busy := d.cfg.Now(), d.busy.Swap(nil) // this isn't the time of the file system
	d.send(m)
	a := <-d.answer
	d.busy.Store(busy)
	d.waited += d.cfg.Now().Sub(began)
	return a.agent, a.refused
}

// Answer implements [drain.Source].
func (d *Directory) Answer(a drain.Agent, _ *ringbuf.Reader, refused error) {
	d.answer <- answer{a, refused}
}

// identify identifies the agent of a file that was just opened. While its process is sought, the agent is what it
// was before a restart.
func (d *Directory) identify(r *record, file files.ID) drain.Agent {
	r.sought = time.Now()
	a := d.attributed(r, file)
	if a.Attribution == drain.Sought && r.of == file && r.Attribution <= drain.Partly {
		a.Agent = r.Agent
		a.Attribution = drain.Sought
	}
	r.of = file
	return d.accept(r, a)
}

// attributed returns what is known about the agent of a file.
func (d *Directory) attributed(r *record, file files.ID) attributed {
	a := d.at.Identify(r.Agent, file, r.sought)
	switch {
	case a.Attribution == drain.Sought && !d.stopped:
		d.seek()
	case a.Attribution == drain.Sought: // no search will find more
		a.Attribution = drain.Left
	}
	a.Agent = d.cfg.Resource.describe(a.Agent)
	return a
}

// accept returns an agent, and reports once if its path replaces a part of its identity.
func (d *Directory) accept(r *record, a attributed) drain.Agent {
	if a.unknown != "" && a.Attribution != drain.Sought && !d.advised.identity.Swap(true) {
		d.report(notice.Notice{
			Kind: notice.IdentityUnknown, Level: slog.LevelWarn, Path: r.Path,
			Text: fmt.Sprintf("%s of an agent isn't known, so the path of its ring identifies it, and an agent with another path is a new one; %s",
				a.unknown, advices[a.unknown]),
		})
	}
	return a.Agent
}

// advices say what to do about an unknown part of identify_by.
var advices = map[string]string{
	ByRank:      "it isn't in its environment (LOCAL_RANK, or that of MPI or Slurm), nor in its title as with vLLM and SGLang: set LOCAL_RANK for each worker, list the variable that has the rank in discovery::processes::env_attributes, or remove rank from identify_by",
	ByPod:       "it isn't in a pod or a container, so remove pod from identify_by",
	ByContainer: "it isn't in a container, so remove container from identify_by",
}

// attribute sends what the last search has found out about open rings and stores. What was known about the process of
// a ring stays if no process has the ring mapped anymore.
func (d *Directory) attribute() {
	for _, r := range d.records {
		if d.ctx.Err() != nil {
			return
		}
		if s := r.store; s != nil && s.snapshot.Attribution == drain.Sought {
			totals := s.snapshot
			s.snapshot = d.describeStore(r, &s.Header)
			s.snapshot.Totals, s.snapshot.Up = totals.Totals, totals.Up
		}
		if r.ring == nil {
			continue
		}
		a := d.attributed(r, r.of)
		if a.Agent == r.Agent || a.Attribution == drain.Sought || a.Attribution == drain.Left && r.Attribution != drain.Sought {
			continue
		}
		was := r.ID
		r.Agent = d.accept(r, a)
		d.send(drain.Attributed{Was: was, Agent: r.Agent, Reader: r.ring})
		d.probe(r)
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
