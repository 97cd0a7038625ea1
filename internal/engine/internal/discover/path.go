// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// state is the state of a path; see the package documentation.
type state uint8

const (
	absent state = iota
	open
	refused
)

// record describes one path.
type record struct {
	drain.Agent
	state state
	ring  *ringbuf.Reader // the newest ring that the owner has; nil if none
	store *store          // nil unless it is reported
	// info describes the file when it was opened or refused, and while its agent isn't known to have
	// exited. An agent that starts later changes the file.
	info files.Info
	walk uint64 // the last walk that reached the path

	// While the path is refused:
	until time.Time // when it is tried again; zero if only after a change of the file

	// Since the path was absent, or the owner has returned a ring that it kept:
	since    time.Time     // when it was first refused
	wait     time.Duration // until the next try
	reported string        // why it is refused, as reported last

	of      files.ID    // the ring or the store that Agent describes
	sought  time.Time   // a search for its process must begin after this
	up      drain.Up    // as the owner knows it
	pending atomic.Bool // the owner hasn't received the last message about up
}

// isStore reports whether the file has the name of a store.
func (r *record) isStore() bool { return mpstore.IsName(r.Name) }

// inUse reports whether a process is known to use the ring or the store of the path.
func (r *record) inUse() bool {
	return r.state == open && (r.store != nil || r.ring != nil && r.up == drain.UpYes)
}

// path returns the path of a name.
func (d *Directory) path(name string) string { return strings.TrimSuffix(d.at.Path, "/") + "/" + name }

// record returns the record of a name. It creates the record if necessary, but returns nil
// if there are too many.
func (d *Directory) record(name string) *record {
	path := d.path(name)
	r := d.records[path]
	if r == nil {
		if d.paths.Add(1) > int64(d.maxFiles()) {
			d.paths.Add(-1)
			return nil
		}
		r = &record{Agent: drain.Agent{ID: path, Name: name, Dir: d.at.Path, Path: path, Holder: d.at.Holder}}
		d.records[path] = r
	}
	return r
}

// setState changes the state of a path.
func (d *Directory) setState(r *record, s state) {
	if s != refused {
		d.setRefusal(r.Path, nil)
	}
	if s == absent {
		r.forget()
	}
	r.state = s
}

// forget forgets why a path was refused.
func (r *record) forget() { r.since, r.wait, r.reported = time.Time{}, 0, "" }

// checkPath checks a path outside of a walk. It follows no link below the directory.
func (d *Directory) checkPath(r *record) {
	if d.stopped {
		return
	}
	f, err := d.at.OpenDir(filepath.Dir(r.Name))
	if err != nil {
		d.failed(r, err)
		return
	}
	defer f.Close()
	d.check(f, r)
}

// check updates the record of a path in an open directory.
func (d *Directory) check(f *files.Dir, r *record) {
	info, err := f.Lstat(filepath.Base(r.Name))
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist
	}
	switch {
	case err != nil:
		d.failed(r, err)
	case r.store != nil || r.ring != nil && idOf(r.ring) == info.ID:
		if d.setState(r, open); r.up != drain.UpNo {
			r.info = info
		}
	case r.state != refused || r.info != info || !r.until.IsZero() && !d.cfg.Now().Before(r.until):
		d.tryOpen(f, r, info)
	default:
		d.retryLater(r)
	}
}

// failed updates the record of a path that can't be checked, usually because it has no file.
func (d *Directory) failed(r *record, err error) {
	switch {
	case isAbsent(err):
		d.setState(r, absent)
	case r.state != open:
		d.refuse(r, files.Info{}, err)
	}
}

// isAbsent reports whether an error means that a file doesn't exist. A file below a
// link doesn't count as existing.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrNotDir)
}

// tryOpen opens the file of a path: a store, or a ring, which it offers to the owner.
func (d *Directory) tryOpen(f *files.Dir, r *record, info files.Info) {
	err := d.ctx.Err()
	switch {
	case err != nil:
	case r.isStore():
		err = d.openStore(f, r, info)
	default:
		err = d.openRing(f, r, info)
	}
	if err != nil && d.ctx.Err() == nil && !isAbsent(err) { // the search wasn't canceled, and the file wasn't just removed
		d.refuse(r, info, err)
	}
}

// probeAll probes all open rings, and updates all stores.
func (d *Directory) probeAll() {
	for _, r := range d.records {
		if r.ring != nil && d.ctx.Err() == nil {
			d.probe(r)
		}
		d.update(r)
	}
}

// probe asks the kernel whether another process has a ring open, and sends the result to the owner, unless
// that knows it, or hangs. Where the kernel can't tell, the last search for processes decides.
func (d *Directory) probe(r *record) {
	if r.pending.Load() {
		return
	}
	up := upOf(r.ring)
	if up == drain.UpUnknown {
		got := d.at.Identify(r.Agent, r.of, r.sought)
		if up = got.up; got.Attribution == drain.Sought || up == drain.UpNo && r.state != open && r.up != drain.UpYes {
			return // a mapping of a file that was removed is recognized only if it was known before
		}
	}
	if up == drain.UpYes && r.up == up {
		return
	}
	r.up = up
	r.pending.Store(true)
	d.send(drain.Attended{ID: r.ID, Reader: r.ring, Up: up, Pending: &r.pending})
	if up == drain.UpNo && (d.cfg.CloseExited && !d.cfg.Observe || d.stopped) { // an observer leaves the ring to its consumer
		d.send(drain.Gone{ID: r.ID, Reader: r.ring})
	}
}

// upOf asks the kernel whether another process has a ring open.
func upOf(r *ringbuf.Reader) drain.Up {
	switch attended, err := r.Attended(); {
	case err != nil:
		return drain.UpUnknown
	case attended:
		return drain.UpYes
	default:
		return drain.UpNo
	}
}

// idOf identifies the file of a ring.
func idOf(r *ringbuf.Reader) files.ID {
	dev, ino := r.ID()
	return files.ID{Dev: dev, Ino: ino}
}
