// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ErrExited is a process that has exited.
var ErrExited = errors.New("process has exited")

// Scanner finds processes on Linux only.
type Scanner struct{}

// New returns a Scanner.
func New(Config) *Scanner { return &Scanner{} }

// Scan returns [errors.ErrUnsupported].
func (*Scanner) Scan(time.Time) ([]Process, error) {
	return nil, fmt.Errorf("find processes: %w: it takes Linux", errors.ErrUnsupported)
}

// Examine returns [errors.ErrUnsupported].
func (*Scanner) Examine(pid int) (Process, error) {
	return Process{}, fmt.Errorf("examine process %d: %w: it takes Linux", pid, errors.ErrUnsupported)
}

// OpenFolder returns [errors.ErrUnsupported].
func OpenFolder(_ Process, _, dir, _ string) (*ringbuf.Folder, error) {
	return nil, fmt.Errorf("open %s of a process: %w: it takes Linux", dir, errors.ErrUnsupported)
}
