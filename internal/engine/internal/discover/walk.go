// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// maxDepth limits the depth of subdirectories that a pattern with ** matches.
const maxDepth = 16

// walk checks all files in the directory, as far as the holder's budget allows.
func (d *Directory) walk() {
	d.walks++
	d.skipped, d.seen, d.included = false, 0, 0
	left := d.cfg.maxFiles()
	d.retryAt, d.walked = time.Time{}, files.Info{}
	f, err := d.openDir()
	if errors.Is(err, errGone) {
		return
	}
	if err == nil {
		d.walked, _ = f.Stat()
		err = d.walkDir(f, "", &left)
		if err != nil || !d.cfg.Hold {
			d.release()
		}
		if err != nil {
			d.walked = files.Info{}
		}
	}
	d.skipped = d.skipped || left == 0
	if d.ctx.Err() != nil {
		return
	}
	if d.stores != nil {
		d.stores.sweep(d.walks)
	}
	d.reportWalk(err)
	d.sweep(d.walks)
}

// open returns the open directory. A directory that is held isn't opened again by each walk.
func (d *Directory) openDir() (*files.Dir, error) {
	if now := d.cfg.Now(); now.Sub(d.openedAt) >= reopenInterval || d.dir == nil || d.dir.Rewind() != nil {
		d.release()
		f, err := d.cfg.OpenDir(d.cfg.Dir, ".")
		if err != nil {
			return nil, err
		}
		d.dir, d.openedAt = f, now
	}
	return d.dir, nil
}

// release closes the open directory.
func (d *Directory) release() {
	if d.dir != nil {
		_ = d.dir.Close() // it was only read
		d.dir = nil
	}
}

// walkDir checks the files in an open directory, and the rings in its subdirectories that a
// pattern can match. prefix is the name of a subdirectory with a trailing slash, or ""
// for the directory itself. left is the number of entries that the walk may still read.
func (d *Directory) walkDir(f *files.Dir, prefix string, left *int) error {
	for *left > 0 {
		entries, err := f.ReadDir(min(*left, 1024))
		*left -= len(entries)
		for _, e := range entries {
			if err := d.ctx.Err(); err != nil {
				return err
			}
			name := prefix + e.Name()
			if !e.IsDir() {
				d.seen++
				if MatchesAny(d.cfg.Include, name) {
					d.included++
				}
			}
			switch {
			case e.IsDir() && d.cfg.HasRings() && d.cfg.mayContain(name):
				d.enterDir(f, name, left)
			case e.IsDir():
			case d.stores != nil && prefix == "" && mpstore.IsName(name):
				d.stores.check(f, name, d.walks)
			case d.cfg.matches(name):
				if r := d.record(name); r != nil {
					r.walk = d.walks
					d.awaitAnswers()
					d.checkEntry(f, r)
				} else {
					d.skipped = true
				}
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
func (d *Directory) enterDir(f *files.Dir, name string, left *int) {
	below, err := f.Open(filepath.Base(name))
	if err != nil {
		return
	}
	defer below.Close()
	_ = d.walkDir(below, name+"/", left)
}

var errManyFiles = errors.New("directory has too many files")

// reportWalk reports when the directory becomes unreadable, readable again, or too
// large.
func (d *Directory) reportWalk(err error) {
	var over error
	if d.skipped {
		over = fmt.Errorf("%w: at most %d are checked", errManyFiles, d.cfg.maxFiles())
		d.setRefusal(d.cfg.Dir, &Refusal{Reason: "budget", Err: over})
	} else {
		d.setRefusal(d.cfg.Dir, nil)
	}
	d.mu.Lock()
	before := d.missing
	d.missing = err
	d.mu.Unlock()
	n := notice.Notice{Path: d.cfg.Dir, Level: slog.LevelWarn, Err: err}
	switch {
	case err != nil && (before == nil || missingText(err) != missingText(before)):
		n.Kind, n.Text = notice.DirectoryMissing, missingText(err)
	case err == nil && before != nil:
		n.Kind, n.Level, n.Text = notice.DirectoryFound, slog.LevelInfo, "telemetry directory can be read now"
	case d.skipped && !d.truncated:
		n.Kind, n.Err, n.Text = notice.DirectoryCut, over, "some files in this directory are ignored; give agents their own directory"
	case d.seen > 0 && d.included == 0 && !d.cfg.Discovered && !d.unmatched:
		d.unmatched = true
		n.Kind, n.Level = notice.PatternsUnmatched, slog.LevelInfo
		n.Text = fmt.Sprintf("include (%s) matches none of the %d files in this directory; patterns are globs such as decode-*, not regular expressions",
			strings.Join(d.cfg.Include, ", "), d.seen)
	}
	d.truncated = d.skipped
	if n.Kind != 0 {
		d.report(n)
	}
}

// missingText states why a directory can't be read, and what to do.
func missingText(err error) string {
	const text = "telemetry directory can't be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return text + " because it doesn't exist; agents don't create it, so create it and set NIXL_TELEMETRY_DIR to it"
	case errors.Is(err, fs.ErrPermission):
		return text + " because this process has no permission to list it; change its mode, or run this as another user"
	case errors.Is(err, files.ErrNotDir):
		return text + " because it is another kind of file; configure the directory that contains the rings"
	default:
		return text
	}
}
