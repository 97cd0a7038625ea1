// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// unsupported returns the error of every call that opens a file.
func unsupported(what, path string) error {
	return fmt.Errorf("%s %s: %w: NIXL rings are supported on linux/amd64 and linux/arm64 only", what, path, errors.ErrUnsupported)
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
func (*Dir) Lstat(name string) (Info, error) { return Info{}, unsupported("lstat", name) }

// Stat returns [errors.ErrUnsupported].
func (*Dir) Stat() (Info, error) { return Info{}, errors.ErrUnsupported }

// Stat returns [errors.ErrUnsupported].
func Stat(path string) (Info, error) { return Info{}, unsupported("stat", path) }

// OpenFile returns [errors.ErrUnsupported].
func (*Dir) OpenFile(name string, _ int, _ ...uint32) (*os.File, error) {
	return nil, unsupported("open", name)
}

// OnDisk returns false.
func (*Dir) OnDisk() bool { return false }

// Close does nothing.
func (*Dir) Close() error { return nil }

// Open returns [errors.ErrUnsupported].
func Open(path string, _ int) (*os.File, error) { return nil, unsupported("open", path) }

// Create returns [errors.ErrUnsupported].
func Create(path string) (*os.File, error) { return nil, unsupported("create", path) }

// IDOf returns nothing.
func IDOf(fs.FileInfo) ID { return ID{} }

// LeaseRefused returns [errors.ErrUnsupported].
func LeaseRefused(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }

// IsLocked returns [errors.ErrUnsupported].
func IsLocked(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// Lock returns [errors.ErrUnsupported].
func Lock(f *os.File) error { return unsupported("lock", f.Name()) }

// CheckLocal returns [errors.ErrUnsupported].
func CheckLocal(f *os.File, _ bool) (bool, error) { return false, unsupported("open", f.Name()) }

// Uptime returns [errors.ErrUnsupported].
func Uptime() (time.Duration, error) { return 0, errors.ErrUnsupported }
