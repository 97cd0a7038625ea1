// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
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
	// relistInterval is the interval at which unchanged directories are opened and listed again.
	relistInterval = 5 * ProbeInterval
)

// maxFiles returns how many entries of the directory a walk reads, and how many files are remembered
// in all directories of a container, because that takes about 1 KB each. A directory that containers may
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

	began      time.Time
	left       int // entries that may still be read
	candidates int // files that may be rings
	selected   bool
	listed     map[string]files.Info // directories that will be unchanged
}

// walk checks all files in the directory, as far as the limit allows.
func (d *Directory) walk() {
	w := walk{Directory: d, began: d.cfg.Now(), left: d.maxFiles(), listed: make(map[string]files.Info)}
	d.walks++
	d.retryAt = time.Time{}
	if d.skipped || w.began.Sub(d.listed) >= relistInterval || !d.allInUse() {
		d.listed = w.began
		clear(d.unchanged)
	}
	if info, ok := d.unchanged["."]; ok && info == d.describe() {
		return
	}
	d.walked = files.Info{}
	d.release()
	f, err := d.at.OpenDir(".")
	if errors.Is(err, errGone) {
		return
	}
	truncated := d.skipped
	d.skipped = false
	if err == nil {
		info, _ := f.Stat()
		if err = w.list(f, ".", info); err == nil {
			d.walked = info
		}
		if d.opened = f; err != nil || !d.cfg.Hold {
			d.release()
		}
	}
	d.skipped = d.skipped || w.left == 0
	if d.ctx.Err() != nil {
		return
	}
	d.sweep(err == nil && !d.skipped || isAbsent(err))
	maps.Copy(d.unchanged, w.listed)
	d.reportMissing(err)
	w.report(truncated)
}

// allInUse reports whether there are files, and processes are known to use all of them: an agent that
// restarts changes its file, but not the directory.
func (d *Directory) allInUse() bool {
	for _, r := range d.records {
		if !r.inUse() {
			return false
		}
	}
	return len(d.records) > 0
}

// release closes the open directory.
func (d *Directory) release() {
	if d.opened != nil {
		_ = d.opened.Close() // it was only read
		d.opened = nil
	}
}

// list checks the files in an open directory, which is described by info, and in its subdirectories that a
// pattern can match. dir is the name of a subdirectory, or "." for the directory itself.
func (w *walk) list(f *files.Dir, dir string, info files.Info) error {
	delete(w.unchanged, dir)
	flat := true
	for w.left > 0 {
		asked := min(w.left, 1024)
		entries, err := f.ReadDir(asked)
		w.left -= len(entries)
		for _, e := range entries {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if name := path.Join(dir, e.Name()); !e.IsDir() {
				w.file(f, name)
			} else if w.cfg.mayContain(name) {
				w.enter(f, name)
				flat = false
			}
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case len(entries) < asked:
			// A later file may have the same time as one that was created just before the directory was described.
			if flat && w.began.Sub(info.ModTime) >= ProbeInterval {
				w.listed[dir] = info
			}
			return nil
		}
	}
	return nil
}

// enter walks a subdirectory. A subdirectory that can't be read counts as empty.
func (w *walk) enter(f *files.Dir, name string) {
	info, err := f.Lstat(path.Base(name))
	if before, ok := w.unchanged[name]; err != nil || ok && before == info {
		return
	}
	if below, err := f.Open(path.Base(name)); err == nil {
		_ = w.list(below, name, info)
		_ = below.Close() // it was only read
	}
}

// file checks a file, unless it can't be a ring or a store.
func (w *walk) file(f *files.Dir, name string) {
	base := path.Base(name)
	if store := w.cfg.Stores != nil && mpstore.IsName(name); !store { // the patterns apply to its agent
		if mpstore.IsName(base) || mpstore.IsAuxiliary(base) {
			return
		}
		w.candidates++
		if !matchesAny(w.cfg.Include, name) {
			return
		}
	}
	w.selected = true
	r := w.record(name)
	if r == nil {
		w.skipped = true
		return
	}
	r.walk = w.walks
	w.check(f, r)
}

// sweep updates the records of paths that the last walk didn't reach. If it was complete, they have no file, unless
// their directory is unchanged. It deletes the records of paths that have neither a file nor a ring or store.
func (d *Directory) sweep(complete bool) {
	for name, r := range d.records {
		if _, unchanged := d.unchanged[path.Dir(r.Name)]; complete && r.walk != d.walks && r.state != absent && !unchanged {
			d.setState(r, absent)
		}
		if r.state == absent && r.store != nil && r.store.snapshot.Up == drain.UpUnknown { // its process is never known to exit
			d.drop(r)
		}
		if r.state == absent && r.ring == nil && r.store == nil {
			delete(d.records, name)
			d.paths.Add(-1)
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

// report reports when a walk ignores files, unless the one before did, or when the patterns select none.
func (w *walk) report(truncated bool) {
	var over *Refusal
	if w.skipped {
		over = &Refusal{"budget", fmt.Errorf("too many files: at most %d are checked, in all directories of a container together", w.maxFiles())}
	}
	w.setRefusal(w.at.Path, over)
	if over != nil && !truncated {
		w.Directory.report(notice.Notice{
			Kind: notice.DirectoryCut, Level: slog.LevelWarn, Path: w.at.Path, Err: over.Err,
			Text: "some files in this directory are ignored; give agents their own directory",
		})
	}
	if w.candidates == 0 && !w.selected || w.advised.patterns.Swap(true) || w.selected {
		return
	}
	text := fmt.Sprintf("include (%s) matches none of the %d files in this directory; patterns are globs such as decode-*, not regular expressions",
		strings.Join(w.cfg.Include, ", "), w.candidates)
	w.Directory.report(notice.Notice{Kind: notice.PatternsUnmatched, Level: slog.LevelInfo, Path: w.at.Path, Text: text})
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
