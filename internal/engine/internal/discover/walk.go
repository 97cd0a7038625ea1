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
	"slices"
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
	// reopenInterval is the interval at which a directory that is held is opened again if another one
	// has replaced it, and at which unchanged directories are listed again.
	reopenInterval = 5 * ProbeInterval
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

	began   time.Time
	left    int                // entries that may still be read
	seen    int                // files
	matched bool               // include selects some of them
	folders map[string]*folder // that it has reached
}

// folder is a directory or subdirectory without subdirectories to walk. A walk doesn't list it again
// while the kernel would have changed its time if there were a new file.
type folder struct {
	info   files.Info
	listed time.Time
	files  []*record
}

// unchanged reports whether a folder, which is described by info, has the same files as before, and they are all
// in use: an agent that restarts changes its file, but not the folder. The files count as checked.
func (w *walk) unchanged(prefix string, info files.Info) bool {
	f := w.Directory.folders[prefix]
	if f == nil || len(f.files) == 0 || f.info != info || w.began.Sub(f.listed) >= reopenInterval || slices.ContainsFunc(f.files, func(r *record) bool { return !r.inUse() }) {
		return false
	}
	for _, r := range f.files {
		r.walk = w.walks
	}
	w.matched, w.folders[prefix] = true, f
	return true
}

// walk checks all files in the directory, as far as the limit allows.
func (d *Directory) walk() {
	d.walks++
	d.retryAt, d.walked = time.Time{}, files.Info{}
	w := walk{Directory: d, began: d.cfg.Now(), left: d.maxFiles(), folders: make(map[string]*folder)}
	f, err := d.openDir()
	if errors.Is(err, errGone) {
		return
	}
	truncated := d.skipped
	d.skipped = false
	if err == nil {
		walked, _ := f.Stat()
		if !w.unchanged("", walked) {
			err = w.list(f, "", walked)
		}
		if err == nil {
			d.walked = walked
		}
		d.folders = w.folders
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
	now := d.cfg.Now()
	if d.opened != nil && now.Sub(d.openedAt) >= reopenInterval {
		there, err := files.Stat(d.at.Path) // opening it takes many more system calls
		if d.openedAt = now; err != nil || there.ID != d.describe().ID {
			d.release()
		}
	}
	if d.opened == nil || d.opened.Rewind() != nil {
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

// list checks the files in an open directory, which is described by info, and in its subdirectories that a
// pattern can match. prefix is the name of a subdirectory with a trailing slash, or "" for the directory itself.
func (w *walk) list(f *files.Dir, prefix string, info files.Info) error {
	found, all := &folder{info: info, listed: w.began}, w.at.hasRings()
	for w.left > 0 {
		asked := min(w.left, 1024)
		entries, err := f.ReadDir(asked)
		w.left -= len(entries)
		for _, e := range entries {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if name := prefix + e.Name(); !e.IsDir() {
				all = w.file(f, name, found) && all
			} else if w.at.hasRings() && w.cfg.mayContain(name) {
				w.enter(f, name)
				all = false
			}
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case len(entries) < asked:
			// A later file may have the same time as one that was created just before the folder was described.
			if all && w.began.Sub(info.ModTime) >= ProbeInterval {
				w.folders[prefix] = found
			}
			return nil
		}
	}
	return nil
}

// enter walks a subdirectory. A subdirectory that can't be read counts as empty.
func (w *walk) enter(f *files.Dir, name string) {
	info, err := f.Lstat(path.Base(name))
	if err != nil || w.unchanged(name+"/", info) {
		return
	}
	if below, err := f.Open(path.Base(name)); err == nil {
		_ = w.list(below, name+"/", info)
		_ = below.Close() // it was only read
	}
}

// file checks a file, unless it can't be a ring or a store. It reports false if there are too many.
func (w *walk) file(f *files.Dir, name string, in *folder) bool {
	w.seen++
	included := MatchesAny(w.cfg.Include, name)
	w.matched = w.matched || included
	base := path.Base(name)
	switch {
	case w.cfg.Stores != nil && mpstore.IsName(name): // the patterns apply to its agent
	case !included, MatchesAny(w.cfg.Exclude, name), mpstore.IsName(base), mpstore.IsAuxiliary(base), !w.at.hasRings():
		return true
	}
	r := w.record(name)
	if r == nil {
		w.skipped = true
		return false
	}
	r.walk, in.files = w.walks, append(in.files, r)
	w.awaitAnswers()
	w.check(f, r)
	return true
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

// report reports when a walk ignores files, unless the one before did, or include selects none.
func (w *walk) report(truncated bool) {
	var over *Refusal
	if w.skipped {
		over = &Refusal{"budget", fmt.Errorf("too many files: at most %d are checked, in all directories of a container together", w.maxFiles())}
	}
	w.setRefusal(w.at.Path, over)
	switch {
	case over != nil && !truncated:
		w.Directory.report(notice.Notice{
			Kind: notice.DirectoryCut, Level: slog.LevelWarn, Path: w.at.Path, Err: over.Err,
			Text: "some files in this directory are ignored; give agents their own directory",
		})
	case w.seen > 0 && !w.matched && w.cfg.Interval == 0 && !w.unmatched:
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
