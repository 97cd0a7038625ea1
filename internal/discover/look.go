// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"io/fs"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// visit looks at a path by itself. No link below the directory is followed.
func (t *tracker) visit(r *record) {
	if t.stopped {
		return
	}
	f, err := t.cfg.OpenFolder(r.Dir, filepath.Dir(r.Name))
	if err != nil {
		t.missed(r, err)
		return
	}
	defer f.Close()
	t.look(f, r)
}

// look brings the record of a path, in an open folder, up to date.
func (t *tracker) look(f *ringbuf.Folder, r *record) {
	info, err := f.Lstat(filepath.Base(r.Name))
	switch {
	case err == nil && info.IsDir():
		t.missed(r, fs.ErrNotExist)
	case err != nil:
		t.missed(r, err)
	case r.ring != nil && r.ring.ID() == info.ID:
		t.follow(r, info)
	default:
		t.try(f, r, info)
	}
}

// follow notes that a path has the file of its open ring. If the file has
// changed, its agent may have restarted, which a drain finds out.
func (t *tracker) follow(r *record, info ringbuf.FileInfo) {
	t.enter(r, open)
	if !r.info.Same(info) {
		t.send(drain.Touched{ID: r.ID})
	}
	r.info = info
}

// missed notes that a file can't be looked at, most likely because there is none.
func (t *tracker) missed(r *record, err error) {
	switch {
	case isAbsent(err):
		t.enter(r, absent)
	case r.state != open:
		t.refuse(r, ringbuf.FileInfo{}, err)
	}
}

// sweep looks at the paths that the current walk didn't come across: the
// directory may be too large, or unreadable for a while. It forgets those that
// have no file and no agent.
func (t *tracker) sweep(walk uint64) {
	now := t.cfg.Now()
	for path, r := range t.records {
		if r.walk != walk && r.state != absent {
			t.visit(r)
		}
		if r.state == absent && !r.known && !r.changed && r.calm(now) {
			delete(t.records, path)
		}
	}
}
