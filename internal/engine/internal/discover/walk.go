// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

const (
	// maxDepth limits the depth of subdirectories that a pattern with ** matches.
	maxDepth = 16
	// reopenInterval is the interval at which a directory that is held is opened again, because
	// another one may have replaced it.
	reopenInterval = 10 * time.Second
)

// maxFiles returns how many files a walk of the directory checks. A directory that containers may
// share may have the rings of all agents of a host.
func (d *Directory) maxFiles() int {
	if d.at.Holder.Shared {
		return 1 << 16
	}
	return 1 << 12
}

// walk is the state of a walk through a directory.
type walk struct {
	*Directory

	left     int // entries that may still be read
	seen     int // files
	included int // files that include selects
}

// walk checks all files in the directory, as far as the limit allows.
func (d *Directory) walk() {
	d.walks++
	d.retryAt, d.walked = time.Time{}, files.Info{}
	w := walk{Directory: d, left: d.maxFiles()}
	f, err := d.openDir()
	if errors.Is(err, errGone) {
		return
	}
	truncated := d.skipped
	d.skipped = false
	if err == nil {
		walked, _ := f.Stat()
		if err = w.list(f, ""); err == nil {
			d.walked = walked
		}
		if err != nil || !d.cfg.Hold {
			d.release()
		}
	}
	d.skipped = d.skipped || w.left == 0
	if d.ctx.Err() != nil {
		return
	}
	d.sweep(err == nil && !d.skipped || isAbsent(err))
	d.reportMissing(err)
	w.report(truncated)
}

// openDir returns the open directory. A directory that is held isn't opened again by each walk.
func (d *Directory) openDir() (*files.Dir, error) {
	if now := d.cfg.Now(); now.Sub(d.openedAt) >= reopenInterval || d.opened == nil || d.opened.Rewind() != nil {
		d.release()
		f, err := d.at.OpenDir(".")
		if err != nil {
			return nil, err
		}
		d.opened, d.openedAt = f, now
	}
	return d.opened, nil
}

// release closes the open directory.
func (d *Directory) release() {
	if d.opened != nil {
		_ = d.opened.Close() // it was only read
		d.opened = nil
	}
}

// list checks the files in an open directory, and in its subdirectories that a pattern can match. prefix is
// the name of a subdirectory with a trailing slash, or "" for the directory itself.
func (w *walk) list(f *files.Dir, prefix string) error {
	for w.left > 0 {
		entries, err := f.ReadDir(min(w.left, 1024))
		w.left -= len(entries)
		for _, e := range entries {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if name := prefix + e.Name(); e.IsDir() {
				w.enter(f, name)
			} else {
				w.file(f, name)
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

// enter walks a subdirectory. A subdirectory that can't be read counts as empty.
func (w *walk) enter(f *files.Dir, name string) {
	if !w.at.hasRings() || !w.cfg.mayContain(name) {
		return
	}
	if below, err := f.Open(path.Base(name)); err == nil {
		_ = w.list(below, name+"/")
		_ = below.Close() // it was only read
	}
}

// file checks a file, unless it can't be a ring or a store.
func (w *walk) file(f *files.Dir, name string) {
	w.seen++
	included := MatchesAny(w.cfg.Include, name)
	if included {
		w.included++
	}
	base := path.Base(name)
	switch {
	case w.cfg.Stores != nil && mpstore.IsName(name): // the patterns apply to its agent
	case !included, MatchesAny(w.cfg.Exclude, name), mpstore.IsName(base), mpstore.IsAuxiliary(base), !w.at.hasRings():
		return
	}
	r := w.record(name)
	if r == nil {
		w.skipped = true
		return
	}
	r.walk = w.walks
	w.awaitAnswers()
	w.check(f, r)
}

// sweep updates the records of paths that the last walk didn't reach. If it was complete, they have no file. It
// deletes the records of paths that have neither a file nor a ring or store.
func (d *Directory) sweep(complete bool) {
	for path, r := range d.records {
		if complete && r.walk != d.walks && r.state != absent {
			d.setState(r, absent)
		}
		if r.state == absent && r.store != nil && r.store.snapshot.Up == drain.UpUnknown { // its process is never known to exit
			d.drop(r)
		}
		if r.state == absent && r.ring == nil && r.store == nil {
			delete(d.records, path)
		}
	}
}

// reportMissing reports when the directory becomes unreadable, and readable again.
func (d *Directory) reportMissing(err error) {
	d.mu.Lock()
	before := d.missing
	d.missing = err
	d.mu.Unlock()
	n := notice.Notice{Path: d.at.Path, Level: slog.LevelWarn, Err: err}
	switch {
	case err != nil && (before == nil || missingText(err) != missingText(before)):
		n.Kind, n.Text = notice.DirectoryMissing, missingText(err)
	case err == nil && before != nil:
		n.Kind, n.Level, n.Text = notice.DirectoryFound, slog.LevelInfo, "telemetry directory can be read now"
	default:
		return
	}
	d.report(n)
}

// report reports when a walk ignores files, unless the one before did, or include selects none.
func (w *walk) report(truncated bool) {
	var over *Refusal
	if w.skipped {
		over = &Refusal{"budget", fmt.Errorf("directory has too many files: at most %d are checked", w.maxFiles())}
	}
	w.setRefusal(w.at.Path, over)
	switch {
	case over != nil && !truncated:
		w.Directory.report(notice.Notice{
			Kind: notice.DirectoryCut, Level: slog.LevelWarn, Path: w.at.Path, Err: over.Err,
			Text: "some files in this directory are ignored; give agents their own directory",
		})
	case w.seen > 0 && w.included == 0 && !w.cfg.discovered && !w.unmatched:
		w.unmatched = true
		w.Directory.report(notice.Notice{
			Kind: notice.PatternsUnmatched, Level: slog.LevelInfo, Path: w.at.Path,
			Text: fmt.Sprintf("include (%s) matches none of the %d files in this directory; patterns are globs such as decode-*, not regular expressions",
				strings.Join(w.cfg.Include, ", "), w.seen),
		})
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
