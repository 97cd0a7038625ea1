// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// File is the content of a store.
type File struct {
	Header
	Totals  *tally.Totals
	Running bool // whether the process holds the lock on the store
	Known   bool // whether the file system tells
}

// ReadFile reads a store once. It doesn't modify the store and never waits for its lock.
// The error wraps [ErrInvalid], [ErrVersion], [files.ErrNotRegular],
// [io/fs.ErrPermission] or [io/fs.ErrNotExist].
func ReadFile(path string) (*File, error) {
	f, err := readFile(filepath.Split(path))
	if err != nil {
		return nil, fmt.Errorf("read store %s: %w", path, err)
	}
	return f, nil
}

func readFile(dir, name string) (_ *File, err error) {
	in, err := files.OpenDir(filepath.Clean(dir), ".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	s, err := Open(in, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	running, errLock := s.Running()
	values, err := s.Read(new(Buffer), nil)
	if err != nil {
		return nil, err
	}
	shape, err := tally.ImportShape(s.Bounds, true)
	if err != nil {
		return nil, err
	}
	return &File{
		Header: s.Header, Totals: shape.Import(values, &tally.Values{}, nil),
		Running: running, Known: errLock == nil,
	}, nil
}
