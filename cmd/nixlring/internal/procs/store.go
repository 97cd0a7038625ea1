// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Store is the content of a store.
type Store struct {
	mpstore.Header
	Totals *tally.Totals
	Alive  Alive // the store's process
}

// ReadStore reads a store once. It doesn't modify the store and never waits for its lock.
// The error wraps [mpstore.ErrInvalid], [mpstore.ErrVersion], [files.ErrNotRegular],
// [io/fs.ErrPermission] or [io/fs.ErrNotExist].
func ReadStore(path string) (*Store, error) {
	s, err := readStore(filepath.Split(path))
	if err != nil {
		return nil, fmt.Errorf("read store %s: %w", path, err)
	}
	return s, nil
}

func readStore(dir, name string) (_ *Store, err error) {
	in, err := files.OpenDir(filepath.Clean(dir), ".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	file, err := in.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	s, err := mpstore.Open(file, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	alive := Unknown
	if running, err := s.Running(); running {
		alive = Yes
	} else if err == nil {
		alive = No
	}
	values, err := s.Read(new(mpstore.Buffer), nil)
	if err != nil {
		return nil, err
	}
	shape, err := tally.ImportShape(s.Bounds, true)
	if err != nil {
		return nil, err
	}
	return &Store{Header: s.Header, Totals: shape.Import(values, &tally.Values{}, nil), Alive: alive}, nil
}
