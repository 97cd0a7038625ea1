// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"io/fs"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
)

// checkPath opens the directory of a path and checks the path. It follows no link below
// the directory.
func (t *tracker) checkPath(r *record) {
	if t.stopped {
		return
	}
	f, err := t.cfg.OpenDir(r.Dir, filepath.Dir(r.Name))
	if err != nil {
		t.statFailed(r, err)
		return
	}
	defer f.Close()
	t.checkEntry(f, r)
}

// checkEntry updates the record of a path in an open directory.
func (t *tracker) checkEntry(f *files.Dir, r *record) {
	info, err := f.Lstat(filepath.Base(r.Name))
	switch {
	case err == nil && info.IsDir():
		t.statFailed(r, fs.ErrNotExist)
	case err != nil:
		t.statFailed(r, err)
	case r.ring != nil && idOf(r.ring) == info.ID:
		t.stillOpen(r, info)
	default:
		t.tryOpen(f, r, info)
	}
}

// stillOpen updates the record of a path that still has the file of its open ring.
// If the file has changed, its agent may have restarted, which draining detects.
func (t *tracker) stillOpen(r *record, info files.Info) {
	t.setState(r, open)
	if !r.info.Same(info) {
		t.send(drain.Touched{ID: r.ID})
	}
	r.info = info
}

// statFailed updates the record of a path that can't be checked, usually because it
// has no file.
func (t *tracker) statFailed(r *record, err error) {
	switch {
	case isAbsent(err):
		t.setState(r, absent)
	case r.state != open:
		t.refuse(r, files.Info{}, err)
	}
}

// sweep checks the paths that the current walk didn't reach, because the directory
// is too large or temporarily unreadable. It deletes the records of paths that have
// neither a file nor an agent.
func (t *tracker) sweep(walk uint64) {
	for path, r := range t.records {
		if t.ctx.Err() != nil {
			return
		}
		if r.walk != walk && r.state != absent {
			t.checkPath(r)
		}
		if r.state == absent && !r.known {
			delete(t.records, path)
			t.cfg.Rings.free(t.cfg.Holder, someFiles, 1)
		}
	}
}
