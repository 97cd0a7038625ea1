// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package listing lists the files of directories: which of them are telemetry rings or
// stores, their state, and why other files can't be read. It never changes a file.
package listing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Entry is one file.
type Entry struct {
	Path     string
	Owner    uint32 // uid
	Modified time.Time

	Ring     bool // whether the file is a readable ring; the following fields are only set for rings
	Layout   ringbuf.Layout
	Capacity int // slots
	Pending  int // events not consumed yet

	Store *procs.Store // nil unless the file is a readable store
	Alive procs.Alive  // whether the agent of the ring, or the process of the store, is running

	Err   error // why the file isn't a readable ring or store
	Other bool  // whether the file seems unrelated to telemetry
	Asked bool  // whether the caller passed this path itself
}

// Fill returns the fill level of the ring, from 0 to 1.
func (e *Entry) Fill() float64 {
	if e.Capacity < 2 {
		return 0
	}
	return float64(e.Pending) / float64(e.Capacity-1)
}

// Reason returns the text of Err without the path.
func (e *Entry) Reason() string {
	if e.Err == nil {
		return ""
	}
	if inner := errors.Unwrap(e.Err); inner != nil {
		return inner.Error()
	}
	return e.Err.Error()
}

// Notes returns short notes for an operator about a readable ring or store. euid is the user
// ID of the process that would consume the ring.
func (e *Entry) Notes(euid int) (notes []string) {
	if e.Store != nil {
		return e.storeNotes()
	}
	if !e.Ring {
		return nil
	}
	switch {
	case e.Alive == procs.No:
		notes = append(notes, "agent exited")
	case e.Capacity > 1 && e.Pending >= e.Capacity-1 && e.Alive == procs.Unknown:
		notes = append(notes, "full: the agent, if it is running, loses events")
	case e.Capacity > 1 && e.Pending >= e.Capacity-1:
		notes = append(notes, "full: the agent loses events")
	}
	if euid != 0 && uint32(euid) != e.Owner {
		notes = append(notes, fmt.Sprintf("only uid %d or root can consume it", e.Owner))
	}
	return notes
}

func (e *Entry) storeNotes() (notes []string) {
	p := e.Store
	agent := fmt.Sprintf("agent %s on %s", p.Agent, p.Host)
	if p.LocalRank != "" {
		agent += ", local rank " + p.LocalRank
	}
	notes = append(notes, agent)
	if e.Alive == procs.No {
		notes = append(notes, "process exited")
	}
	return notes
}

// Walk calls fn for each file in the directories, sorted by name. If recursive is true, it
// includes subdirectories, which contain the rings of agents whose names contain a slash.
// A path can also be a file. If a directory can't be read, Walk continues with the others
// and returns an error.
func Walk(ctx context.Context, paths []string, recursive bool, fn func(Entry)) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, walkOne(ctx, path, recursive, fn))
	}
	return errors.Join(errs...)
}

func walkOne(ctx context.Context, root string, recursive bool, fn func(Entry)) error {
	var errs []error
	for f, err := range Files(root, recursive) {
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(errs, ctx.Err())...)
		case err != nil:
			if f.Path == root || !errors.Is(err, fs.ErrNotExist) { // ignore files removed in the meantime
				errs = append(errs, patherr.Explain(patherr.Rings, f.Path, err))
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
		e.Owner, _ = files.Owner(info)
		defer func() { e.Other = e.Err != nil && foreign(path, e.Err, info) }()
	}
	if mpstore.IsName(filepath.Base(path)) {
		if e.Store, e.Err = procs.ReadStore(path); e.Err == nil {
			e.Alive = e.Store.Alive
		}
		return e
	}
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	if err != nil {
		e.Err = err
		return e
	}
	defer r.Close()
	e.Ring, e.Layout, e.Capacity = true, r.Layout(), r.Capacity()
	if e.Pending, err = r.Read(1, func(ringbuf.Batch) {}); err != nil {
		e.Ring, e.Err = false, err
		return e
	}
	return e
}
