// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"os"
)

// unsupported returns the error of every call that opens a file.
func unsupported(what, path string) error {
	return fmt.Errorf("%s %s: %w: NIXL rings are supported on linux/amd64 and linux/arm64 only", what, path, errors.ErrUnsupported)
}

// OpenReader returns [errors.ErrUnsupported].
func OpenReader(path string, _ Mode) (*Reader, error) { return nil, unsupported("open ring", path) }

// OpenReaderWith returns [errors.ErrUnsupported].
func OpenReaderWith(path string, _ Mode, _ func(int) (*os.File, error)) (*Reader, error) {
	return nil, unsupported("open ring", path)
}

// Peek returns [errors.ErrUnsupported].
func Peek(path string) (Header, error) { return Header{}, unsupported("open ring", path) }

// PeekFile returns [errors.ErrUnsupported].
func PeekFile(f *os.File) (Header, error) { return Header{}, unsupported("read ring", f.Name()) }

// Create returns [errors.ErrUnsupported].
func Create(path string, _ Layout, _ int) (*Writer, error) {
	return nil, unsupported("create ring", path)
}
