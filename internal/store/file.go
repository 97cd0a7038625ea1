// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// File is the content of a store.
type File struct {
	Agent   string
	Process drain.Process
	Up      drain.Up // whether the process holds the lock on the store
}

// IsName reports whether a file name is that of a store.
func IsName(name string) bool {
	_, ok := parseName(name)
	return ok
}

// ReadFile reads a store once, with the same checks as a [Directory]. It doesn't modify
// the store and never waits for its lock. The error wraps [ErrInvalid], [ErrVersion],
// [ringbuf.ErrNotRegular], [io/fs.ErrPermission] or [io/fs.ErrNotExist].
func ReadFile(path string) (*File, error) {
	f, err := readFile(filepath.Split(path))
	if err != nil {
		return nil, fmt.Errorf("read store %s: %w", path, err)
	}
	return f, nil
}

func readFile(dir, name string) (f *File, err error) {
	parsed, ok := parseName(name)
	if !ok {
		return nil, fmt.Errorf("%w: file name isn't nixl.PID.START.INSTANCE.mmap", ErrInvalid)
	}
	in, err := ringbuf.OpenDir(filepath.Clean(dir), ".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	file, err := in.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	d := &Directory{cfg: Config{Dir: dir, Histograms: true, Now: time.Now}}
	p, err := d.openStore(file, name, parsed)
	if err != nil {
		return nil, err
	}
	return &File{Agent: p.agent, Up: p.up, Process: p.describe(p.shape.Import(&p.values, &tally.Values{}, nil))}, nil
}
