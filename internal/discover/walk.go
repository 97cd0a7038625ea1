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

// ProbeInterval is how often a directory is walked, and how often the kernel is
// asked who has each ring open. inotify reports nearly all changes of files at
// once; the walk is for what it misses.
const ProbeInterval = 2 * time.Second

const (
	// maxEntries bounds one walk: a busy /tmp may hold any number of files.
	maxEntries = 1 << 16
	// maxRecords bounds what is remembered of files that come and go.
	maxRecords = 2 * maxEntries
	// maxDepth bounds how deep a pattern with ** leads.
	maxDepth = 16
)

// walk looks at all files of the directory.
func (d *Directory) walk() {
	d.walks++
	left := maxEntries
	d.watch(d.cfg.Dir)
	f, err := d.cfg.OpenFolder(d.cfg.Dir, ".")
	if errors.Is(err, errGone) {
		return
	}
	if err == nil {
		err = errors.Join(d.walkFolder(f, "", &left), f.Close())
	}
	d.found(err, left == 0)
	d.sweep(d.walks)
	d.walked = d.cfg.Now()
}

// walkFolder looks at the files of a folder, and of the folders in it that a
// pattern leads to. folder is its name with a slash, or "". left is how many
// entries may still be looked at.
func (d *Directory) walkFolder(f *ringbuf.Folder, folder string, left *int) error {
	for *left > 0 {
		entries, err := f.ReadDir(min(*left, 1024))
		*left -= len(entries)
		for _, e := range entries {
			name := folder + e.Name()
			switch {
			case e.IsDir() && d.cfg.leadsInto(name):
				d.enterFolder(f, name, left)
			case !e.IsDir() && d.cfg.wants(name):
				r := d.record(name)
				r.walk = d.walks
				d.look(f, r)
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

// enterFolder walks a folder in another. One that can't be read counts as empty.
func (d *Directory) enterFolder(f *ringbuf.Folder, name string, left *int) {
	below, err := f.Open(filepath.Base(name))
	if err != nil {
		return
	}
	defer below.Close()
	d.watch(filepath.Join(d.cfg.Dir, name))
	_ = d.walkFolder(below, name+"/", left)
}

// found reports when the directory can't be read, or not completely, and when it
// can be read again.
func (d *Directory) found(err error, cut bool) {
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
	case cut && !d.cut:
		n.Kind, n.Text = notice.DirectoryCut, fmt.Sprintf("directory has more than %d entries, and the others are ignored; give agents a directory of their own", maxEntries)
	}
	d.cut = cut
	if n.Kind != 0 {
		d.notices.Report(n)
	}
}
