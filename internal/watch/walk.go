package watch

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// openFolder is how every file is come to that a watcher looks at: by its
// folder, so that no link leads out of the directory that is watched. It is a
// variable for a test to hang in it, as a directory may.
var openFolder = ringbuf.OpenFolder

// place is where a file is, seen from one of the directories.
type place struct{ dir, name, path string }

// folder opens the folder that the file is in, or was.
func (p place) folder() (*ringbuf.Folder, error) { return openFolder(p.dir, filepath.Dir(p.name)) }

// base is the file's name within its folder.
func (p place) base() string { return filepath.Base(p.name) }

// gone says whether there is no file any more.
func (p place) gone() bool {
	f, err := p.folder()
	if err == nil {
		defer f.Close()
		_, err = f.Lstat(p.base())
	}
	return absent(err)
}

// absent says whether an error means that there is no such file. What lies
// behind a link isn't there, as far as a watcher is concerned.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ringbuf.ErrNotFolder)
}

// look is one look through a directory.
type look struct {
	dir  string
	left int             // how many entries more are looked at
	seen map[string]bool // paths
	n    *notifier
}

// walkDir considers the files of a directory.
func (w *Watcher) walkDir(l *look) error {
	f, err := openFolder(l.dir, ".")
	if err != nil {
		return err
	}
	defer f.Close()
	return w.walk(l, f, "")
}

// walk considers the files of one folder, and of those below that a pattern
// leads to.
func (w *Watcher) walk(l *look, f *ringbuf.Folder, folder string) error {
	for l.left > 0 {
		entries, err := f.ReadDir(min(l.left, 1024))
		l.left -= len(entries)
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			switch {
			case e.IsDir() && w.leadsInto(name):
				w.enterFolder(l, f, name)
			case !e.IsDir() && w.matches(name):
				p := place{dir: l.dir, name: name, path: filepath.Join(l.dir, name)}
				l.seen[p.path] = true
				w.consider(f, p)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enterFolder walks through a folder of another. One that can't be read is as
// good as an empty one.
func (w *Watcher) enterFolder(l *look, f *ringbuf.Folder, name string) {
	below, err := f.Open(filepath.Base(name))
	if err != nil {
		return
	}
	defer below.Close()
	w.notifyOf(l.n, filepath.Join(l.dir, name))
	_ = w.walk(l, below, name)
}

// matches says whether a name within a directory is wanted.
func (w *Watcher) matches(name string) bool {
	return matchesAny(w.cfg.Include, name) && !matchesAny(w.cfg.Exclude, name)
}

// leadsInto says whether a pattern asks for what is in a folder.
func (w *Watcher) leadsInto(folder string) bool {
	if matchesAny(w.cfg.Exclude, folder) {
		return false
	}
	depth := strings.Count(folder, "/") + 1
	for _, p := range w.cfg.Include {
		if strings.Contains(p, "**") && depth < maxDepth {
			return true
		}
		parts := strings.Split(p, "/")
		if len(parts) <= depth {
			continue
		}
		// A slash within braces doesn't part the pattern in two.
		if strings.Contains(p, "{") || doublestar.MatchUnvalidated(strings.Join(parts[:depth], "/"), folder) {
			return true
		}
	}
	return false
}

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if doublestar.MatchUnvalidated(p, name) {
			return true
		}
	}
	return false
}
