package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// scanner is what the scan loop knows.
type scanner struct {
	scanning sync.Mutex // guards what follows
	agents   map[string]*Agent
	refused  map[string]*refusal
	due      map[string]*refusal // those of refused that are to be tried again in time
	missing  map[string]error    // directories that can't be read
	cut      map[string]bool
	full     bool // there are more rings than allowed, and it was said
}

func (s *scanner) init() {
	s.agents = make(map[string]*Agent)
	s.refused = make(map[string]*refusal)
	s.due = make(map[string]*refusal)
	s.missing = make(map[string]error)
	s.cut = make(map[string]bool)
}

// place is where a file is, seen from one of the directories.
type place struct{ dir, name, path string }

// scanLoop finds rings until ctx ends.
func (w *Watcher) scanLoop(ctx context.Context, n *notifier) {
	defer n.close()
	rescan := time.NewTicker(rescanEvery)
	defer rescan.Stop()
	retry := time.NewTimer(rescanEvery)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rescan.C:
			w.scan(n)
		case <-retry.C:
			w.retry()
		case path := <-w.wanted:
			w.lookAt(path)
		case e := <-n.events():
			w.lookAt(e.Name)
		case err := <-n.errors():
			w.notifyFailed(n, err)
		}
		retry.Reset(w.untilRetry())
	}
}

// Scan looks through the directories once.
func (w *Watcher) Scan() { w.scan(nil) }

func (w *Watcher) scan(n *notifier) {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	defer w.flushAll()
	seen := make(map[string]bool)
	for _, dir := range w.cfg.Directories {
		w.notifyOf(n, dir)
		left := maxEntries
		err := w.walk(dir, "", &left, seen, n)
		w.directoryState(dir, err, left == 0)
	}
	w.sweep(seen)
}

// walk considers the files of one folder, and of those below that a pattern
// leads to.
func (w *Watcher) walk(dir, folder string, left *int, seen map[string]bool, n *notifier) error {
	f, err := os.Open(filepath.Join(dir, folder))
	if err != nil {
		return err
	}
	defer f.Close()
	for *left > 0 {
		entries, err := f.ReadDir(min(*left, 1024))
		*left -= len(entries)
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			switch {
			case e.IsDir() && w.leadsInto(name):
				w.notifyOf(n, filepath.Join(dir, name))
				// A folder that can't be read is as good as an empty one.
				_ = w.walk(dir, name, left, seen, n)
			case !e.IsDir() && w.matches(name):
				p := place{dir: dir, name: name, path: filepath.Join(dir, name)}
				seen[p.path] = true
				w.consider(p)
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

// directoryState reports a directory that can't be read, or not wholly, and
// one that can be read again.
func (w *Watcher) directoryState(dir string, err error, cut bool) {
	if err != nil && w.missing[dir] == nil {
		w.report(Notice{
			Kind: DirectoryMissing, Level: slog.LevelWarn, Path: dir, Err: err,
			Text: "telemetry directory can't be read; agents make no directory, so create it and give them its name in NIXL_TELEMETRY_DIR",
		})
	}
	if err == nil && w.missing[dir] != nil {
		w.report(Notice{Kind: DirectoryFound, Level: slog.LevelInfo, Path: dir, Text: "telemetry directory can be read now"})
	}
	w.missing[dir] = err
	if cut && !w.cut[dir] {
		w.cut[dir] = true
		w.report(Notice{
			Kind: ScanCut, Level: slog.LevelWarn, Path: dir,
			Text: fmt.Sprintf("directory has more than %d entries, of which only so many are looked at; give agents a directory of their own", maxEntries),
		})
	}
}

// sweep forgets files that are gone. One that a look through its directory
// didn't come to may still be there: the directory may be too large, or not be
// readable for a while.
func (w *Watcher) sweep(seen map[string]bool) {
	for path := range w.refused {
		if !seen[path] && gone(path) {
			w.forget(path)
		}
	}
	for path, a := range w.agents {
		if !seen[path] && gone(path) {
			w.vanished(a)
		}
		w.retireIfStale(a)
	}
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// lookAt considers one path, if it is one that is wanted.
func (w *Watcher) lookAt(path string) {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	defer w.flush()
	if p, ok := w.placeOf(path); ok {
		w.consider(p)
		w.drainNow(w.agents[path])
	}
}

// drainNow drains one ring out of turn. What happens in a ring raises no
// event of the file system, but an agent that starts anew on it does, when it
// sets the file's size: right then its position is at 0, which shows that it
// started.
func (w *Watcher) drainNow(a *Agent) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reader != nil {
		w.drain(a, w.cfg.Now())
	}
}

func (w *Watcher) placeOf(path string) (place, bool) {
	for _, dir := range w.cfg.Directories {
		name, err := filepath.Rel(dir, path)
		if err == nil && filepath.IsLocal(name) && w.matches(name) {
			return place{dir: dir, name: name, path: path}, true
		}
	}
	return place{}, false
}

// consider brings what is known of a path up to date.
func (w *Watcher) consider(p place) {
	info, err := os.Lstat(p.path)
	a := w.agents[p.path]
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.forget(p.path)
		if a != nil {
			w.vanished(a)
		}
	case err != nil:
		w.refuse(p, nil, err)
	case info.IsDir():
	case a != nil && a.follows(info):
	default:
		w.tryOpen(p, a, info)
	}
}

// follows says whether the agent's open ring is the file that info is of, and
// still whole. A file that was gone may have come back, with its directory.
func (a *Agent) follows(info fs.FileInfo) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reader == nil || !a.reader.SameFile(info) || a.reader.Truncated() {
		return false
	}
	a.removed = false
	return true
}

// vanished notes that an agent's file was removed. The agent may still write
// into it, so that the ring stays open.
func (w *Watcher) vanished(a *Agent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.removed {
		return
	}
	a.removed = true
	if a.reader != nil {
		w.note(Notice{
			Kind: RingRemoved, Level: slog.LevelInfo, Path: a.Path,
			Text: "ring's file was removed; what its agent still writes is read, but nobody else can see it",
		})
	}
}
