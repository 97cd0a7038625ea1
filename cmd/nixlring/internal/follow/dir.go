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
	// rescanEvery is how often the directory is looked through even if nothing
	// seems to have changed in it.
	rescanEvery = 2 * time.Second
	// unsettled is how long the time of a directory's last change proves
	// nothing: file systems count in steps.
	unsettled = 20 * time.Millisecond
	// maxRings and maxPass bound what one directory and one ring cost.
	maxRings = 4096
	maxPass  = 1 << 16
	// startingFor is how long a file that isn't ready is tried at each poll.
	startingFor = 10 * time.Second
)

// DirConfig is a directory to follow.
type DirConfig struct {
	Path      string
	Recursive bool // agents whose names have a slash are in subfolders
	Handler   Handler
	Now       func() time.Time // time.Now if nil
}

// Dir observes all rings of a directory. It isn't safe for concurrent use.
type Dir struct {
	cfg     DirConfig
	rings   map[string]*Ring // by path
	list    []*Ring          // the same, by path
	refused map[string]refusal
	folders map[string]time.Time // that were looked through, and when they had changed
	scanned time.Time
}

// refusal is a file that can't be opened.
type refusal struct {
	info  fs.FileInfo
	since time.Time
	retry bool // it may become a ring without a change that shows
}

// NewDir follows the rings of a directory. Nothing is looked at before the
// first Poll.
func NewDir(cfg DirConfig) *Dir {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Dir{
		cfg: cfg, rings: make(map[string]*Ring), refused: make(map[string]refusal),
		folders: make(map[string]time.Time),
	}
}

// Rings are the rings that were found so far, by path.
func (d *Dir) Rings() []*Ring { return d.list }

// Poll looks for new rings and hands out what is new in all of them. The error
// is that of the directory; what is wrong with a file is for nixlring ls.
func (d *Dir) Poll() error {
	err := d.look()
	for _, r := range d.list {
		// A ring that can't be opened now is tried again by the next poll.
		_ = r.Poll(maxPass)
	}
	return err
}

// look scans the directory if it may have changed.
func (d *Dir) look() error {
	now := d.cfg.Now()
	if now.Sub(d.scanned) < rescanEvery && !d.changed(now) {
		d.retry(now)
		return nil
	}
	d.scanned = now
	for _, r := range d.list {
		_ = r.Check() // as in Poll
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

// changed says whether a name in one of the folders may have come or gone.
func (d *Dir) changed(now time.Time) bool {
	for folder, last := range d.folders {
		info, err := os.Stat(folder)
		if err != nil || !info.ModTime().Equal(last) || now.Sub(last) < unsettled {
			return true
		}
	}
	return len(d.folders) == 0
}

func (d *Dir) walk(now time.Time) error {
	clear(d.folders)
	seen := make(map[string]bool)
	var failed error
	for f, err := range walk.Dir(d.cfg.Path, d.cfg.Recursive) {
		switch {
		case err != nil:
			if f.Path == d.cfg.Path { // any other folder that can't be read counts as empty
				failed = err
			}
		case f.IsDir():
			if info, err := f.Info(); err == nil {
				d.folders[f.Path] = info.ModTime()
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

// retry tries files that an agent is making a ring of.
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

// Close gives up all rings.
func (d *Dir) Close() error {
	var errs []error
	for _, r := range d.list {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
