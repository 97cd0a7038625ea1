// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// try opens the file at a path, which isn't the ring that the path has, unless
// it is too early for that.
func (t *tracker) try(f *ringbuf.Folder, r *record, info ringbuf.FileInfo) {
	now := t.cfg.Now()
	holder := t.cfg.Rings.holder(info.ID)
	switch {
	case holder != "" && holder != r.Path:
		t.otherName(r, holder)
		return
	case !r.worthTrying(info, now):
		return
	case r.known && t.settles(r, info):
		return
	case holder != "": // it was replaced, and has come back before it was closed
		t.refuse(r, info, errHeld)
		return
	case !r.known && t.cfg.Rings.Full():
		t.refuse(r, info, errLimit)
		return
	}
	ring, err := t.open(f, r)
	if err == nil {
		r.known, r.info = true, info
		r.Agent = t.cfg.Identify(r.Agent, ring)
		t.cfg.Rings.Admit(r.ID)
		t.attach(r, ring)
		t.send(drain.Opened{Agent: r.Agent, Reader: ring, From: t.source})
		t.opened()
		t.probe(r) // the owner has to know whether it runs if another agent has its ID
		return
	}
	switch {
	case errors.Is(err, errLeft):
		t.ignore(r, info)
	case !isAbsent(err): // or it was removed just now
		t.refuse(r, info, err)
	}
}

// open opens a ring for the owner.
func (t *tracker) open(f *ringbuf.Folder, r *record) (*ringbuf.Reader, error) {
	ring, err := ringbuf.OpenReader(r.Path, t.cfg.Mode, ringbuf.In(f), ringbuf.OwnedBy(t.cfg.AllowedUIDs...))
	if err != nil {
		return nil, err
	}
	if (r.state == alias || r.state == ignored && t.cfg.CloseExited) && exited(ring) {
		return nil, errors.Join(errLeft, ring.Close())
	}
	if !t.cfg.Rings.Claim(ring.ID(), r.Path) { // the file was exchanged just now
		return nil, errors.Join(errHeld, ring.Close())
	}
	return ring, nil
}

// exited reports whether a ring is what an agent has left: no other process has
// it open, and nothing is in it.
func exited(ring *ringbuf.Reader) bool {
	attended, err := ring.Attended()
	return err == nil && !attended && ring.Idle()
}

// settles puts off opening a known agent's file that has just changed. It
// doesn't for ever, as anyone may touch the file all the time.
func (t *tracker) settles(r *record, info ringbuf.FileInfo) bool {
	now := t.cfg.Now()
	if !changedWithin(settling, info, now) {
		return false
	}
	t.enter(r, refused)
	if now.Sub(r.since) >= settlingPatience {
		return false
	}
	r.info, r.tried, r.wait = ringbuf.FileInfo{}, now, settling
	t.schedule(r)
	return true
}

// otherName notes that a path is another name of a ring that is open. A running
// agent keeps the name that its ring had when it was found, whatever becomes of
// the file's name: totals that moved to another name would be counted twice by
// whoever adds them up.
func (t *tracker) otherName(r *record, holder string) {
	t.enter(r, alias)
	if t.cfg.Discovered && !strings.HasPrefix(holder, t.cfg.Dir+"/") {
		return
	}
	t.reportOnce(r, notice.Notice{
		Kind: notice.RingRenamed, Level: slog.LevelInfo,
		Text: fmt.Sprintf("this is the ring of %s under another name; its agent is reported under that name until it restarts", holder),
	})
}

// closeRing closes a ring that the owner has given up.
func (t *tracker) closeRing(ring *ringbuf.Reader) {
	if ring == nil {
		return
	}
	id := ring.ID()
	_ = ring.Close() // nothing was written, and nothing depends on it
	t.cfg.Rings.Release(id)
	t.mu.Lock()
	t.rings--
	t.mu.Unlock()
}

// closed closes a ring. If the path has no other, its file is
// ignored until it changes, or the owner wants it reopened.
func (t *tracker) closed(ring *ringbuf.Reader) {
	if r := t.records[ring.Path()]; r != nil && r.ring == ring {
		r.ring = nil
		if r.state == open {
			t.ignore(r, r.info)
		}
	}
	t.closeRing(ring)
}

// reopen closes a ring and opens the path's file again, unless that is done.
func (t *tracker) reopen(a drain.Agent, ring *ringbuf.Reader) {
	if ring != nil {
		t.restarted[ring.ID()] = a.Path
	}
	t.closeRing(ring)
	r := t.records[a.Path]
	if r == nil || r.ring != ring {
		return
	}
	r.ring = nil
	if r.state == open || r.state == ignored {
		t.enter(r, refused)
		r.info, r.tried = ringbuf.FileInfo{}, t.cfg.Now()
	}
	t.visit(r)
}

// retire closes the ring of an agent that has exited.
func (t *tracker) retire(a drain.Agent, ring *ringbuf.Reader) {
	t.cfg.Rings.Leave(a.ID)
	t.closeRing(ring)
	r := t.records[a.Path]
	if r == nil || r.ring != ring {
		return // the owner is about to hear of the path's next ring
	}
	r.ring, r.known = nil, false
	if r.state == open {
		t.ignore(r, r.left)
	}
}

// reject closes a ring whose agent has the ID of another one, and tries again
// later.
func (t *tracker) reject(a drain.Agent, ring *ringbuf.Reader) {
	t.closeRing(ring)
	r := t.records[a.Path]
	if r == nil || r.ring != ring {
		return
	}
	r.ring, r.known = nil, false
	if r.state == open {
		wait := later(r.rejected, firstRetry)
		t.refuse(r, r.info, errIdentity)
		r.rejected, r.wait = wait, wait
	}
}
