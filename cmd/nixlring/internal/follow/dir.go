// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/walk"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// rescanEvery is how often the directory is scanned even if its modification
	// time hasn't changed.
	rescanEvery = 2 * time.Second
	// unsettled is the time after a directory's last change during which another
	// change may not change its modification time, because of its resolution.
	unsettled = 20 * time.Millisecond
	// maxRings and maxPass bound the cost of a directory and of a ring.
	maxRings = 4096
	maxPass  = 1 << 16
	// startingFor is how long a file that isn't ready is retried at each poll.
	startingFor = 10 * time.Second
)

// DirConfig is a directory to follow.
type DirConfig struct {
	Path      string
	Recursive bool // include subdirectories, for agents whose names contain a slash
	Handler   Handler
	Now       func() time.Time // time.Now if nil
}

// Dir observes all rings of a directory. It isn't safe for concurrent use.
type Dir struct {
	cfg         DirConfig
	rings       map[string]*Ring // by path
	list        []*Ring          // the same rings, sorted by path
	refused     map[string]refusal
	directories map[string]time.Time // modification times of the scanned directories
	scanned     time.Time
}

// refusal is a file that can't be opened as a ring.
type refusal struct {
	info  fs.FileInfo
	since time.Time
	retry bool // it may become a ring without a visible change
}

// NewDir returns a Dir. It doesn't read the directory before the first Poll.
func NewDir(cfg DirConfig) *Dir {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Dir{
		cfg: cfg, rings: make(map[string]*Ring), refused: make(map[string]refusal),
		directories: make(map[string]time.Time),
	}
}

// Rings returns the rings found so far, sorted by path.
func (d *Dir) Rings() []*Ring { return d.list }

// Poll searches for new rings and passes the new events of all rings to the Handler. It
// returns errors of reading the directory, but not of opening files.
func (d *Dir) Poll() error {
	err := d.scan()
	for _, r := range d.list {
		_ = r.Poll(maxPass) // the next Poll retries a ring that can't be opened
	}
	return err
}

// scan scans the directory if it may have changed.
func (d *Dir) scan() error {
	now := d.cfg.Now()
	if now.Sub(d.scanned) < rescanEvery && !d.changed(now) {
		d.retry(now)
		return nil
	}
	d.scanned = now
	for _, r := range d.list {
		_ = r.Check() // the next scan retries
	}
	err := d.walk(now)
	d.list = slices.SortedFunc(maps.Values(d.rings), byPath)
	return err
}

func byPath(a, b *Ring) int {
	if a.path < b.path {
		return -1
	}
	return 1
}

// changed reports whether a file may have been added to or removed from one of the
// directories.
func (d *Dir) changed(now time.Time) bool {
	for path, last := range d.directories {
		info, err := os.Stat(path)
		if err != nil || !info.ModTime().Equal(last) || now.Sub(last) < unsettled {
			return true
		}
	}
	return len(d.directories) == 0
}

func (d *Dir) walk(now time.Time) error {
	clear(d.directories)
	seen := make(map[string]bool)
	var failed error
	for f, err := range walk.Dir(d.cfg.Path, d.cfg.Recursive) {
		switch {
		case err != nil:
			if f.Path == d.cfg.Path { // subdirectories that can't be read count as empty
				failed = err
			}
		case f.IsDir():
			if info, err := f.Info(); err == nil {
				d.directories[f.Path] = info.ModTime()
			}
		default:
			seen[f.Path] = true
			d.consider(f.Path, f, now)
		}
	}
	for path := range d.refused {
		if !seen[path] {
			delete(d.refused, path)
		}
	}
	return failed
}

// consider tries to open a file that isn't followed yet.
func (d *Dir) consider(path string, e fs.DirEntry, now time.Time) {
	if d.rings[path] != nil || len(d.rings) >= maxRings {
		return
	}
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	old, known := d.refused[path]
	if known && !old.retry && unchanged(old.info, info) {
		return
	}
	if !known || !unchanged(old.info, info) {
		old = refusal{since: now}
	}
	old.info = info
	d.try(path, old, now)
}

func (d *Dir) try(path string, old refusal, now time.Time) {
	r := NewRing(path, ringbuf.Observe, d.cfg.Handler)
	if name, err := filepath.Rel(d.cfg.Path, path); err == nil {
		r.name = name
	}
	if err := r.open(); err != nil {
		old.retry = errors.Is(err, ringbuf.ErrNotReady) && now.Sub(old.since) < startingFor
		d.refused[path] = old
		return
	}
	delete(d.refused, path)
	d.rings[path] = r
}

func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}

// retry retries files that an agent may be initializing.
func (d *Dir) retry(now time.Time) {
	found := len(d.rings)
	for path, old := range d.refused {
		if old.retry {
			d.try(path, old, now)
		}
	}
	if len(d.rings) != found {
		d.list = slices.SortedFunc(maps.Values(d.rings), byPath)
	}
}

// Close closes all rings.
func (d *Dir) Close() error {
	var errs []error
	for _, r := range d.list {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
