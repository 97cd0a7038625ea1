// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// tryOpen opens the file of a path as the path's new ring, unless it is too early to
// try.
func (t *tracker) tryOpen(f *files.Dir, r *record, info files.Info) {
	now := t.cfg.Now()
	holder := t.cfg.Rings.pathOf(info.ID)
	switch {
	case holder != "" && holder != r.Path:
		t.noteAlias(r, holder)
		return
	case !r.shouldTry(info, now):
		if r.state == refused {
			t.retryLater(r)
		}
		return
	case holder != "": // the path's previous ring is back, and isn't closed yet
		t.refuse(r, info, errHeld)
		return
	case r.limited && r.info.Same(info):
		if err := t.cfg.Rings.admit(t.cfg.Holder); err != nil {
			t.refuse(r, info, err)
			return
		}
	}
	ring, err := t.open(f, r)
	if err == nil {
		r.known, r.info = true, info
		t.cfg.Rings.Add(r.ID, t.cfg.Holder)
		t.setState(r, open)
		r.ring = ring
		t.send(drain.Opened{Agent: r.Agent, Reader: ring, From: t.source})
		t.opened()
		t.reportDisk(f)
		t.probe(r) // if another agent has the same ID, the owner needs to know which one runs
		return
	}
	switch {
	case t.ctx.Err() != nil: // the search was canceled
	case errors.Is(err, errExited):
		t.ignore(r, info)
	case !isAbsent(err): // a file that was just removed isn't refused
		t.refuse(r, info, err)
	}
}

// open opens a ring for the owner.
func (t *tracker) open(f *files.Dir, r *record) (*ringbuf.Reader, error) {
	mode := ringbuf.Consume
	if t.cfg.Observe {
		mode = ringbuf.Observe
	}
	ring, err := ringbuf.OpenReaderWith(r.Path, mode, func(flag int) (*os.File, error) {
		return f.OpenFile(filepath.Base(r.Path), flag, t.cfg.AllowedUIDs...)
	})
	if err != nil {
		return nil, err
	}
	agent, err := t.identify(r, ring)
	if err == nil {
		err = t.ctx.Err()
	}
	if err == nil {
		err = t.admit(r, agent.ID, ring)
	}
	if err != nil {
		return nil, errors.Join(err, ring.Close())
	}
	r.Agent = agent
	return ring, nil
}

// admit returns an error if the owner must not get a ring.
func (t *tracker) admit(r *record, id string, ring *ringbuf.Reader) error {
	switch {
	case (r.state == alias || r.state == ignored && t.cfg.CloseExited) && exited(ring):
		return errExited
	case !r.known && exited(ring):
		if err := t.needed(id); err != nil {
			return err
		}
	}
	if !r.known {
		if err := t.cfg.Rings.admit(t.cfg.Holder); err != nil {
			return err
		}
	}
	size := ring.Layout().FileSize(uint64(ring.Capacity()))
	return t.cfg.Rings.claim(idOf(ring), claim{r.Path, t.cfg.Holder, size}) // fails if the file was just replaced
}

// needed returns an error unless an agent that has exited, and whose ring is empty, must
// still be reported, because its totals are stored. NIXL never removes a ring, so there
// may be thousands of such rings.
func (t *tracker) needed(id string) error {
	if t.cfg.Rings.has(id) || !t.cfg.Stored(id) { // if it is there, the agent already has another ring
		return errExited
	}
	return nil
}

// exited reports whether the agent of a ring has exited and all its events are
// counted: no other process has the ring open, and it is empty.
func exited(ring *ringbuf.Reader) bool {
	attended, err := ring.Attended()
	return err == nil && !attended && ring.Idle()
}

// noteAlias marks a path as another name of an open ring. A running agent keeps the
// name under which its ring was discovered, even if the file is renamed: if its
// totals moved to another name, a sum over all agents would count them twice.
func (t *tracker) noteAlias(r *record, holder string) {
	t.setState(r, alias)
	if t.cfg.Discovered && !strings.HasPrefix(holder, t.cfg.Dir+"/") {
		return
	}
	t.reportOnce(r, notice.Notice{
		Kind: notice.RingRenamed, Level: slog.LevelInfo,
		Text: fmt.Sprintf("file is another name of the ring %s; the agent is reported under the original name until it restarts", holder),
	})
}

// reportDisk reports once that rings of this directory are on a disk.
func (t *tracker) reportDisk(f *files.Dir) {
	if t.onDisk || !f.OnDisk() {
		return
	}
	t.onDisk = true
	t.report(notice.Notice{
		Kind: notice.DirectoryOnDisk, Level: slog.LevelWarn, Path: t.cfg.Dir,
		Text: "rings are on a disk, and no ring is drained while it is frozen or fails; set NIXL_TELEMETRY_DIR to tmpfs, such as /dev/shm",
	})
}

// closeRing closes a ring that the owner has returned.
func (t *tracker) closeRing(ring *ringbuf.Reader) {
	if ring == nil {
		return
	}
	id := idOf(ring)
	_ = ring.Close() // an error has no consequences: nothing was written
	t.cfg.Rings.Release(id)
	t.mu.Lock()
	t.rings--
	t.mu.Unlock()
}

// closed closes a ring. If it is the path's newest ring, the file is ignored until
// it changes or the owner asks to reopen it.
func (t *tracker) closed(ring *ringbuf.Reader) {
	if r := t.records[ring.Path()]; r != nil && r.ring == ring {
		r.ring = nil
		switch {
		case r.state != open:
		case t.cfg.CloseExited: // an agent that has started since may not change the file again
			t.ignore(r, r.exitInfo)
		default:
			t.ignore(r, r.info)
		}
	}
	t.closeRing(ring)
}

// reopen closes a ring and opens the path's file again, unless the path already has
// a newer ring.
func (t *tracker) reopen(a drain.Agent, ring *ringbuf.Reader) {
	t.closeRing(ring)
	r := t.records[a.Path]
	if r == nil || r.ring != ring {
		return
	}
	r.ring = nil
	if r.state == open || r.state == ignored {
		t.setState(r, refused)
		r.info, r.tried = files.Info{}, t.cfg.Now()
	}
	t.checkPath(r)
}

// retire closes the ring of an agent that has exited.
func (t *tracker) retire(a drain.Agent, ring *ringbuf.Reader) {
	t.cfg.Rings.Remove(a.ID)
	t.closeRing(ring)
	r := t.records[a.Path]
	if r == nil || r.ring != ring {
		return // a message about the path's next ring is on its way to the owner
	}
	r.ring, r.known = nil, false
	if r.state == open {
		t.ignore(r, r.exitInfo)
	}
}

// refuseRing closes a ring whose agent has the ID of another agent. The ring is opened again
// later.
func (t *tracker) refuseRing(a drain.Agent, ring *ringbuf.Reader) {
	t.closeRing(ring)
	r := t.records[a.Path]
	if r == nil || r.ring != ring {
		return
	}
	r.ring, r.known = nil, false
	if r.state != open {
		return
	}
	r.refusedWait = nextBackoff(r.refusedWait, firstRetry)
	t.refuse(r, r.info, errIdentity)
	r.wait = r.refusedWait
}
