// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package listing looks at the files of directories and tells which of them
// are telemetry rings, what state those are in, and what is wrong with the
// others. It observes only: no ring is changed and no event is taken.
package listing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/walk"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Entry is one file.
type Entry struct {
	Path     string
	Owner    uint32 // uid
	Modified time.Time

	// Ring is whether the file is one and can be read. What follows is of
	// rings.
	Ring     bool
	Layout   ringbuf.Layout
	Capacity int         // slots
	Pending  int         // events that nobody has taken out yet
	Alive    procs.Alive // its agent

	// Err is why a file that isn't a readable ring is not.
	Err error
	// Other is whether the file has nothing to do with telemetry, as far as
	// can be told.
	Other bool
	// Asked is whether the caller gave this very path.
	Asked bool
}

// Fill is the pending events' share of what the ring can hold.
func (e *Entry) Fill() float64 {
	if e.Capacity < 2 {
		return 0
	}
	return float64(e.Pending) / float64(e.Capacity-1)
}

// Reason is Err without the path, which stands beside it.
func (e *Entry) Reason() string {
	if e.Err == nil {
		return ""
	}
	if inner := errors.Unwrap(e.Err); inner != nil {
		return inner.Error()
	}
	return e.Err.Error()
}

// Notes are what an operator should know of a ring that can be read, in short,
// for a process of a user.
func (e *Entry) Notes(euid int) (notes []string) {
	if !e.Ring {
		return nil
	}
	switch {
	case e.Alive == procs.No:
		notes = append(notes, "its agent has exited")
	case e.Capacity > 1 && e.Pending >= e.Capacity-1 && e.Alive == procs.Unknown:
		notes = append(notes, "full: its agent, if it is alive, loses events")
	case e.Capacity > 1 && e.Pending >= e.Capacity-1:
		notes = append(notes, "full: its agent loses events")
	}
	if euid != 0 && uint32(euid) != e.Owner {
		notes = append(notes, fmt.Sprintf("only uid %d or root may consume it", e.Owner))
	}
	return notes
}

// Walk looks at every file of the directories and calls fn for each, in the
// order of their names. Directories aren't files here. With recursive it goes
// into subfolders: an agent whose name has a slash has its ring in one. A path
// that is a file is looked at itself. A directory that can't be read is an
// error, and the others are looked at all the same.
func Walk(ctx context.Context, paths []string, recursive bool, fn func(Entry)) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, walkOne(ctx, path, recursive, fn))
	}
	return errors.Join(errs...)
}

func walkOne(ctx context.Context, root string, recursive bool, fn func(Entry)) error {
	var errs []error
	for f, err := range walk.Dir(root, recursive) {
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(errs, ctx.Err())...)
		case err != nil:
			if f.Path == root || !errors.Is(err, fs.ErrNotExist) { // files come and go
				errs = append(errs, place.Explain(place.Rings, f.Path, err))
			}
		case !f.IsDir():
			e := look(f.Path, f)
			e.Asked = f.Path == root
			fn(e)
		}
	}
	return errors.Join(errs...)
}

func look(path string, d fs.DirEntry) (e Entry) {
	e.Path = path
	if info, err := d.Info(); err == nil {
		e.Modified = info.ModTime()
		e.Owner, _ = place.Owner(info)
		defer func() { e.Other = e.Err != nil && foreign(path, e.Err, info) }()
	}
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	if err != nil {
		e.Err = err
		return e
	}
	defer r.Close()
	e.Ring, e.Layout, e.Capacity, e.Owner = true, r.Layout(), r.Capacity(), r.Owner()
	if e.Pending, err = r.Read(1, func(ringbuf.Batch) {}); err != nil {
		e.Ring, e.Err = false, err
		return e
	}
	return e
}
