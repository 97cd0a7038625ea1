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

// maxOffered limits the rings of a directory that are open and that the owner hasn't answered yet: a process has
// at most 65,530 mappings by default, and a directory may have as many rings.
const maxOffered = 256

// tryOpen opens the file of a path and offers the ring to the owner.
func (t *tracker) tryOpen(f *files.Dir, r *record, info files.Info) {
	if path := t.held[info.ID]; path != "" { // under another name, or it was replaced and is back
		t.refuse(r, info, fmt.Errorf("%w: %s", drain.ErrOpen, path))
		return
	}
	if len(t.offered) >= maxOffered {
		t.retryAt = t.cfg.Now()
		return
	}
	ring, err := t.openRing(f, r)
	switch {
	case err == nil:
		m := drain.Opened{Agent: r.Agent, Reader: ring, From: t.source, File: idOf(ring)}
		attended, unknown := ring.Attended()
		m.Exited = unknown == nil && !attended && ring.Idle()
		t.setState(r, open)
		r.ring, r.info, t.held[m.File] = ring, info, r.Path
		t.offered[ring] = true
		t.send(m)
		t.count(1)
		if !m.Exited {
			t.reportDisk(f)
		}
		t.probe(r)
	case t.ctx.Err() != nil, isAbsent(err): // the search was canceled, or the file was just removed
	case errors.Is(err, ringbuf.ErrLocked) && !r.since.IsZero(): // not just for a moment
		t.postpone(r, info, err)
		t.send(drain.Opened{Agent: r.Agent, From: t.source, File: info.ID, Locked: err})
	default:
		t.refuse(r, info, err)
	}
}

// openRing opens a ring and identifies its agent.
func (t *tracker) openRing(f *files.Dir, r *record) (*ringbuf.Reader, error) {
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
	if err != nil {
		return nil, errors.Join(err, ring.Close())
	}
	r.Agent = agent
	return ring, nil
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

// take closes a ring that the owner has returned. It returns the record of its path if this
// is the path's newest ring, and nil otherwise.
func (t *tracker) take(path string, ring *ringbuf.Reader) *record {
	r := t.records[path]
	if ring != nil {
		delete(t.held, idOf(ring))
		delete(t.offered, ring)
		t.closeRing(ring)
	}
	if r == nil || r.ring != ring {
		return nil
	}
	r.ring = nil
	return r
}

// closeRing closes a ring.
func (t *tracker) closeRing(ring *ringbuf.Reader) {
	if ring != nil {
		_ = ring.Close() // an error has no consequences: nothing was written
		t.count(-1)
	}
}

// returned closes a ring whose file isn't opened until it differs from what is known about it, or
// the owner asks to reopen it. If the agent has exited, the next one may already have changed the
// file.
func (t *tracker) returned(path string, ring *ringbuf.Reader, exited bool) {
	r := t.take(path, ring)
	if r == nil || r.state != open {
		return
	}
	t.setState(r, refused)
	r.until = time.Time{}
	r.forget()
	if exited {
		r.info = r.exitInfo
	}
}

// reopen closes a ring and opens the path's file again, unless the path already has
// a newer ring.
func (t *tracker) reopen(a drain.Agent, ring *ringbuf.Reader) {
	r := t.take(a.Path, ring)
	if r == nil && ring == nil {
		r = t.record(a.Name) // it was deleted because there was no file
	}
	if r == nil || t.stopped {
		return
	}
	if r.state == open {
		t.setState(r, refused)
	}
	r.info = files.Info{}
	r.forget()
	t.checkPath(r)
}

// answered closes a ring that the owner refused.
func (t *tracker) answered(a drain.Agent, ring *ringbuf.Reader, reason error) {
	if reason == nil {
		delete(t.offered, ring)
		return
	}
	if r := t.take(a.Path, ring); r != nil && (ring == nil || r.state == open) {
		t.refuse(r, r.info, reason)
	}
}
