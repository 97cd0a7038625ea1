// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ProbeInterval is the interval at which a directory is walked and its rings are
// probed. inotify reports most changes immediately; walks find the others.
const ProbeInterval = 2 * time.Second

const (
	// maxEntries limits one walk: a busy /tmp may contain any number of files.
	maxEntries = 1 << 16
	// maxRecords limits the records of files that come and go.
	maxRecords = 2 * maxEntries
	// maxDepth limits the depth of subdirectories that a pattern with ** matches.
	maxDepth = 16
)

// walk checks all files in the directory.
func (d *Directory) walk() {
	d.walks++
	left := maxEntries
	d.watch(d.cfg.Dir)
	f, err := d.cfg.OpenDir(d.cfg.Dir, ".")
	if errors.Is(err, errGone) {
		return
	}
	if err == nil {
		err = errors.Join(d.walkDir(f, "", &left), f.Close())
	}
	d.reportWalk(err, left == 0)
	d.sweep(d.walks)
	d.lastWalk = d.cfg.Now()
}

// walkDir checks the files in an open directory, and in its subdirectories that a
// pattern can match. prefix is the name of a subdirectory with a trailing slash, or ""
// for the directory itself. left is the number of entries that the walk may still read.
func (d *Directory) walkDir(f *ringbuf.Dir, prefix string, left *int) error {
	for *left > 0 {
		entries, err := f.ReadDir(min(*left, 1024))
		*left -= len(entries)
		for _, e := range entries {
			name := prefix + e.Name()
			switch {
			case e.IsDir() && d.cfg.mayContain(name):
				d.enterDir(f, name, left)
			case !e.IsDir() && d.cfg.matches(name):
				r := d.record(name)
				r.walk = d.walks
				d.checkEntry(f, r)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// enterDir walks a subdirectory. A subdirectory that can't be read counts as empty.
func (d *Directory) enterDir(f *ringbuf.Dir, name string, left *int) {
	below, err := f.Open(filepath.Base(name))
	if err != nil {
		return
	}
	defer below.Close()
	d.watch(filepath.Join(d.cfg.Dir, name))
	_ = d.walkDir(below, name+"/", left)
}

// reportWalk reports when the directory becomes unreadable, readable again, or too
// large.
func (d *Directory) reportWalk(err error, truncated bool) {
	d.mu.Lock()
	before := d.missing
	d.missing = err
	d.mu.Unlock()
	n := notice.Notice{Path: d.cfg.Dir, Level: slog.LevelWarn, Err: err}
	switch {
	case err != nil && before == nil:
		n.Kind, n.Text = notice.DirectoryMissing, "telemetry directory can't be read; agents don't create it, so create it and set NIXL_TELEMETRY_DIR to it"
	case err == nil && before != nil:
		n.Kind, n.Level, n.Text = notice.DirectoryFound, slog.LevelInfo, "telemetry directory can be read now"
	case truncated && !d.truncated:
		n.Kind, n.Text = notice.DirectoryCut, fmt.Sprintf("directory has more than %d entries, the others are ignored; give agents their own directory", maxEntries)
	}
	d.truncated = truncated
	if n.Kind != 0 {
		d.notices.Report(n)
	}
}
