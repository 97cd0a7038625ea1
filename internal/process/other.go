// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// ErrExited means that a process has exited.
var ErrExited = errors.New("process has exited")

// Scanner supports only Linux.
type Scanner struct{}

// New returns a Scanner.
func New(Config) *Scanner { return &Scanner{} }

// Scan returns [errors.ErrUnsupported].
func (*Scanner) Scan(time.Time, func(Process) bool) ([]Process, error) {
	return nil, fmt.Errorf("find processes: %w: requires Linux", errors.ErrUnsupported)
}

// Runs returns false.
func Runs(string, Process) bool { return false }

// OpenDir returns [errors.ErrUnsupported].
func OpenDir(_ Process, _, dir, _ string) (*files.Dir, error) {
	return nil, fmt.Errorf("open %s of a process: %w: requires Linux", dir, errors.ErrUnsupported)
}
