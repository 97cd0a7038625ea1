package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// scanner is what the scan loop knows.
type scanner struct {
	// scanning is held by whatever looks at files, and that may take for ever, as
	// a directory hangs, or a store. So it is the scan loop's alone.
	scanning sync.Mutex
	refused  map[string]*refusal
	due      map[string]*refusal       // those of refused that are to be tried again in time
	soonest  time.Time                 // when something is due; zero where nothing is
	hot      map[string]*heat          // to which something has happened of late
	scanned  time.Time                 // when the directories were last looked through
	files    map[ringbuf.FileID]*Agent // which agent has a file open, or had
	cut      map[string]bool
	full     bool // there are more rings than allowed, and it was said

	// sharing guards what follows, and the saver's lists. It is held for moments
	// only, and no other lock is taken meanwhile. Only the scan loop changes
	// agents and missing, and so reads them without.
	sharing sync.Mutex
	agents  map[string]*Agent
	causes  map[string]string // why files that should be rings can't be opened, by path
	missing map[string]error  // directories that can't be read
}

func (s *scanner) init() {
	s.agents = make(map[string]*Agent)
	s.refused = make(map[string]*refusal)
	s.due = make(map[string]*refusal)
	s.causes = make(map[string]string)
	s.missing = make(map[string]error)
	s.hot = make(map[string]*heat)
	s.files = make(map[ringbuf.FileID]*Agent)
	s.cut = make(map[string]bool)
}

// scanLoop finds rings until ctx ends.
func (w *Watcher) scanLoop(ctx context.Context, n *notifier) {
	defer n.close()
	rescan := time.NewTimer(rescanEvery)
	defer rescan.Stop()
	retry := time.NewTimer(rescanEvery)
	defer retry.Stop()
	events, resume := n.events(), time.NewTimer(rescanEvery)
	defer resume.Stop()
	var vain flood
	for {
		select {
		case <-ctx.Done():
			return
		case <-rescan.C:
			w.scan(n)
			rescan.Reset(rescanEvery)
		case <-retry.C:
			w.retry()
		case path := <-w.wanted:
			w.changed(path, true)
		case <-resume.C:
			events = n.events()
		case e := <-events:
			if w.changed(e.Name, e.Op.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename)) {
				break
			}
			if pause := vain.more(w.cfg.Now()); pause > 0 {
				events = nil
				resume.Reset(pause)
			}
		case err := <-n.errors():
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				rescan.Reset(w.untilRescan())
				continue
			}
			w.notifyFailed(err)
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
	defer w.closeLeft()
	seen := make(map[string]bool)
	for _, dir := range w.cfg.Directories {
		w.notifyOf(n, dir)
		l := &look{dir: dir, left: maxEntries, seen: seen, n: n}
		err := w.walkDir(l)
		w.directoryState(dir, err, l.left == 0)
	}
	w.sweep(seen)
	w.coolDown()
	w.scanned = w.cfg.Now()
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
	w.sharing.Lock()
	w.missing[dir] = err
	w.sharing.Unlock()
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
	for path, r := range w.refused {
		if !seen[path] && r.gone() {
			w.forget(path)
		}
	}
	for path, a := range w.agents {
		if !seen[path] && a.place().gone() {
			w.vanished(a)
		}
		w.retireIfStale(a)
	}
}

// lookAt considers one path, if it is one that is wanted.
func (w *Watcher) lookAt(path string) {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	defer w.flush()
	defer w.closeLeft()
	if p, ok := w.placeOf(path); ok {
		w.lookAtPlace(p)
	}
}

func (w *Watcher) lookAtPlace(p place) {
	w.visit(p)
	w.drainNow(w.agents[p.path])
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

// visit considers a file by itself.
func (w *Watcher) visit(p place) {
	f, err := p.folder()
	if err != nil {
		w.missed(p, err)
		return
	}
	defer f.Close()
	w.consider(f, p)
}

// consider brings what is known of a path up to date. The file is in a folder
// that is open.
func (w *Watcher) consider(f *ringbuf.Folder, p place) {
	info, err := f.Lstat(p.base())
	a := w.agents[p.path]
	switch {
	case err != nil:
		w.missed(p, err)
	case info.IsDir():
	case a != nil && a.follows(info):
	default:
		w.tryOpen(f, p, a, info)
	}
}

// missed notes that a file can't be looked at, most likely because it is gone.
func (w *Watcher) missed(p place, err error) {
	if !absent(err) {
		w.refuse(p, ringbuf.FileInfo{}, err)
		return
	}
	w.forget(p.path)
	if a := w.agents[p.path]; a != nil {
		w.vanished(a)
	}
}

// follows says whether the agent's open ring is the file that info is of, and
// still whole. A file that was gone may have come back, with its directory.
func (a *Agent) follows(info ringbuf.FileInfo) bool {
	r := a.ring()
	if r == nil || r.ID() != info.ID || r.Truncated() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
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
		w.noteOf(a, Notice{
			Kind: RingRemoved, Level: slog.LevelInfo,
			Text: "ring's file was removed or renamed; what its agent still writes is read under this name",
		})
	}
}
