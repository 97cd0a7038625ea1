// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ringfile describes the files of directories: which of them are telemetry rings or stores, their
// state, and why others can't be read. An [Entry] is the short form, for a list, and a [Report] the long
// one. This package never changes a file.
package ringfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Entry describes a file. The JSON field names are stable.
type Entry struct {
	Path     Path        `json:"path"`
	Ring     bool        `json:"ring"`               // whether the file is a readable ring
	Layout   string      `json:"layout,omitempty"`   // of a readable ring or store
	Capacity int         `json:"capacity,omitempty"` // slots
	Pending  *int        `json:"pending,omitempty"`  // events
	Fill     *float64    `json:"fill,omitempty"`     // 0 to 1
	Store    *Store      `json:"store,omitempty"`    // of a readable store
	InUse    diagnose.Up `json:"in_use"`             // whether a process has the ring open for writing, or holds the lock on the store
	Owner    uint32      `json:"owner_uid"`
	Modified time.Time   `json:"modified"`
	Problem  string      `json:"problem,omitempty"` // why the file can't be read
	Notes    []string    `json:"notes,omitempty"`

	Other bool `json:"-"` // the file seems unrelated to telemetry
	Given bool `json:"-"` // the caller passed this path itself
}

// Path is a path. In JSON, it is valid UTF-8.
type Path string

// MarshalText returns the path as JSON contains it.
func (p Path) MarshalText() ([]byte, error) { return []byte(units.Text(string(p))), nil }

// answer returns whether it is so, or that it is unknown if there is an error.
func answer(yes bool, err error) diagnose.Up {
	switch {
	case err != nil:
		return diagnose.Unknown
	case yes:
		return diagnose.Yes
	default:
		return diagnose.No
	}
}

// List calls fn for each file in the directories, sorted by name, with notes for a consumer that runs as
// euid. If recursive is true, it includes subdirectories, which contain the rings of agents whose names
// contain a slash. A path can also be a file. If a directory can't be read, List continues with the others
// and returns an error.
func List(ctx context.Context, paths []string, recursive bool, euid int, fn func(*Entry)) error {
	var errs []error
	for _, root := range paths {
		if _, err := os.Readlink(root); err == nil {
			if info, err := os.Stat(root); err == nil && info.IsDir() { // a link to a directory is one
				root += string(filepath.Separator)
			}
		}
		// WalkDir only returns the error of a canceled context.
		errs = append(errs, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				if path == root || !errors.Is(err, fs.ErrNotExist) { // ignore files removed in the meantime
					errs = append(errs, patherr.Explain(patherr.Rings, path, err))
				}
			case d.IsDir():
				if path != root && !recursive {
					return fs.SkipDir
				}
			default:
				if r, err := inspect(path, euid); err == nil {
					r.Given = path == root
					fn(&r.Entry)
				}
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// inspect reads a file. The report has what is in the file, but not who uses it.
func inspect(path string, euid int) (*Report, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	r := &Report{File: describe(info), Advice: []string{}, Entry: Entry{Path: Path(path), Modified: info.ModTime()}}
	r.Owner, r.File.Group = patherr.Owner(info)
	if r.named() {
		r.err = r.readStore()
	} else {
		r.err = r.readRing()
	}
	if r.err != nil {
		r.Problem = reason(r.err)
		r.Other = unrelated(path, r.err, info)
	}
	r.note(euid)
	return r, nil
}

// named reports whether the file has the name of a store. Then a Collector doesn't read it as a ring.
func (r *Report) named() bool { return mpstore.IsName(filepath.Base(string(r.Path))) }

// readRing reads the file as a ring.
func (r *Report) readRing() (err error) {
	ring, err := ringbuf.OpenReader(string(r.Path), ringbuf.Observe)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	pending, err := ring.Read(0, r.addDrops)
	if err != nil {
		return err
	}
	fill := float64(pending) / float64(ring.Capacity()-1)
	r.Ring, r.Layout, r.Capacity, r.Pending, r.Fill = true, ring.Layout().String(), ring.Capacity(), &pending, &fill
	r.File.EventSize = ring.Layout().EventSize()
	r.InUse = OpenForWriting(string(r.Path))
	return nil
}

// note adds short notes for an operator.
func (r *Report) note(euid int) {
	full := r.full()
	switch {
	case r.Store != nil:
		r.noteStore()
		return
	case r.InUse == diagnose.No && r.Ring:
		r.Notes = append(r.Notes, "agent exited")
	case full && r.InUse == diagnose.Unknown:
		r.Notes = append(r.Notes, "full: the agent, if it is running, loses events")
	case full:
		r.Notes = append(r.Notes, "full: the agent loses events")
	}
	if r.Ring && euid != 0 && uint32(euid) != r.Owner {
		r.Notes = append(r.Notes, fmt.Sprintf("only uid %d or root can consume it", r.Owner))
	}
}

// full reports whether the file is a full ring.
func (r *Report) full() bool { return r.Ring && *r.Pending >= r.Capacity-1 }

// Percent returns the fill of a ring, rounded down: only a full ring has 100%.
func (e *Entry) Percent() string { return fmt.Sprintf("%d%%", 100**e.Pending/(e.Capacity-1)) }

// reason returns the text of an error without the path.
func reason(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}
