// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// state is the state of a path; see the package documentation.
type state uint8

const (
	absent state = iota
	open
	refused
)

// record describes one path.
type record struct {
	drain.Agent
	state state
	ring  *ringbuf.Reader // the newest ring that the owner has; nil if none
	info  files.Info      // the file when it was opened or refused
	walk  uint64          // the last walk that reached the path

	// While the path is refused:
	until time.Time // when it is tried again; zero if only after a change of the file

	// Since the path was absent, or the owner has returned a ring that it kept:
	since time.Time     // when it was first refused
	wait  time.Duration // until the next try

	reported string // why it is refused, as reported last

	sought  time.Time // a search for the agent's process must have begun after this
	seeking bool      // there was no such search yet

	// exitInfo describes the file when a probe last found that no other process has
	// it open. An agent that starts later changes the file.
	exitInfo files.Info
}

// tracker opens rings and keeps the record of each path. Only the directory's
// goroutine may use it, except for State.
type tracker struct {
	cfg     Config
	send    func(drain.Message)
	notices *notice.Reporter
	source  drain.Source // the owner returns rings to it

	records map[string]*record       // by path
	held    map[files.ID]string      // the paths of all open rings, by file
	offered map[*ringbuf.Reader]bool // rings that the owner hasn't answered; at most maxOffered
	seeking bool                     // the process of an agent is sought
	retryAt time.Time                // when the first refused path is tried again
	stopped bool                     // nothing is opened from now on
	onDisk  bool                     // it was reported that rings are on a disk
	ctx     context.Context          // ends with the directory's goroutine

	mu      sync.Mutex // guards the fields below; never held during a call that may block
	missing error
	rings   int // open rings and stores
	refused map[string]Refusal
}

func newTracker(cfg Config, send func(drain.Message), notices *notice.Reporter, source drain.Source) tracker {
	return tracker{
		cfg: cfg, send: send, notices: notices, source: source, ctx: context.Background(),
		records: make(map[string]*record), held: make(map[files.ID]string), offered: make(map[*ringbuf.Reader]bool), refused: make(map[string]Refusal),
	}
}

// State is the state of a source, for telemetry and health checks.
type State struct {
	Missing error              // why the source can't find rings; nil if it can
	Open    int                // open rings
	Refused map[string]Refusal // rings that can't be opened, by path

	Directories int // directories that a [Watcher] watches
}

// Refusal states why a ring can't be opened.
type Refusal struct {
	Reason string // value of the metric attribute reason
	Err    error
}

// State returns the state of the tracker. It is safe for concurrent use and
// never blocks.
func (t *tracker) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return State{Missing: t.missing, Open: t.rings, Refused: maps.Clone(t.refused)}
}

// path returns the path of a name.
func (t *tracker) path(name string) string { return strings.TrimSuffix(t.cfg.Dir, "/") + "/" + name }

// record returns the record of a name. It creates the record if necessary, but returns nil
// if there are too many.
func (t *tracker) record(name string) *record {
	path := t.path(name)
	r := t.records[path]
	if r == nil {
		if len(t.records) >= t.cfg.maxFiles() {
			return nil
		}
		r = &record{Agent: drain.Agent{ID: path, Name: name, Dir: t.cfg.Dir, Path: path, Holder: t.cfg.Holder}}
		t.records[path] = r
	}
	return r
}

// report reports a notice about the directory or one of its files.
func (t *tracker) report(n notice.Notice) {
	n.Pod, n.Container = t.cfg.Holder.Pod, t.cfg.Holder.Container
	t.notices.Report(n)
}

// setState changes the state of a path.
func (t *tracker) setState(r *record, s state) {
	if s != refused {
		t.setRefusal(r.Path, nil)
	}
	if s == absent {
		r.forget()
	}
	r.state = s
}

// forget forgets why a path was refused.
func (r *record) forget() { r.since, r.wait, r.reported = time.Time{}, 0, "" }

func (t *tracker) setRefusal(path string, refusal *Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if refusal == nil {
		delete(t.refused, path)
	} else {
		t.refused[path] = *refusal
	}
}

// count adds to the number of open rings and stores.
func (t *tracker) count(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rings += n
}

// checkPath opens the directory of a path and checks the path. It follows no link below
// the directory.
func (t *tracker) checkPath(r *record) {
	if t.stopped {
		return
	}
	f, err := t.cfg.OpenDir(t.cfg.Dir, filepath.Dir(r.Name))
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
		t.setState(r, open)
		r.info = info
	case r.state != refused || !r.info.Same(info) || !r.until.IsZero() && !t.cfg.Now().Before(r.until):
		t.tryOpen(f, r, info)
	default:
		t.retryLater(r)
	}
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

// isAbsent reports whether an error means that a file doesn't exist. A file below a
// link doesn't count as existing.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrNotDir)
}

// sweep checks the paths that the current walk didn't reach, because the directory
// is too large or temporarily unreadable. It deletes the records of paths that have
// neither a file nor a ring.
func (t *tracker) sweep(walk uint64) {
	for path, r := range t.records {
		if t.ctx.Err() != nil {
			return
		}
		if r.walk != walk && r.state != absent {
			t.checkPath(r)
		}
		if r.state == absent && r.ring == nil {
			delete(t.records, path)
		}
	}
}

// idOf identifies the file of a ring.
func idOf(r *ringbuf.Reader) files.ID {
	dev, ino := r.ID()
	return files.ID{Dev: dev, Ino: ino}
}
