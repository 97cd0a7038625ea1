// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// unsupported returns the error of every call that opens a file.
func unsupported(what, path string) error {
	return fmt.Errorf("%s %s: %w: NIXL rings are supported on linux/amd64 and linux/arm64 only", what, path, errors.ErrUnsupported)
}

// OpenReader returns [errors.ErrUnsupported].
func OpenReader(path string, _ Mode, _ ...Option) (*Reader, error) {
	return nil, unsupported("open ring", path)
}

// SameFile returns false.
func (*Reader) SameFile(fs.FileInfo) bool { return false }

// Peek returns [errors.ErrUnsupported].
func Peek(path string, _ ...Option) (Header, error) { return Header{}, unsupported("open ring", path) }

// Unattended returns [errors.ErrUnsupported].
func Unattended(path string, _ ...Option) (bool, error) { return false, unsupported("open ring", path) }

// Create returns [errors.ErrUnsupported].
func Create(path string, _ Layout, _ int) (*Writer, error) {
	return nil, unsupported("create ring", path)
}

// Dir is an open directory. On this platform, none can be opened.
type Dir struct{}

// OpenDir returns [errors.ErrUnsupported].
func OpenDir(dir, _ string) (*Dir, error) { return nil, unsupported("open", dir) }

// Open returns [errors.ErrUnsupported].
func (*Dir) Open(name string) (*Dir, error) { return nil, unsupported("open", name) }

// OpenBelow returns [errors.ErrUnsupported].
func (*Dir) OpenBelow(path string) (*Dir, error) { return nil, unsupported("open", path) }

// ReadDir returns [errors.ErrUnsupported].
func (*Dir) ReadDir(int) ([]fs.DirEntry, error) { return nil, errors.ErrUnsupported }

// Lstat returns [errors.ErrUnsupported].
func (*Dir) Lstat(name string) (FileInfo, error) { return FileInfo{}, unsupported("lstat", name) }

// OpenFile returns [errors.ErrUnsupported].
func (*Dir) OpenFile(name string, _ ...Option) (*os.File, error) {
	return nil, unsupported("open", name)
}

// Close does nothing.
func (*Dir) Close() error { return nil }
