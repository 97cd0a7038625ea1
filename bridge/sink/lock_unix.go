// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package sink

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a file among the programs that open it, and returns the function that
// unlocks it. A file system without locks is not an error.
func lock(f *os.File) (unlock func()) {
	fd := int(f.Fd())
	for errors.Is(syscall.Flock(fd, syscall.LOCK_EX), syscall.EINTR) {
	}
	return func() { _ = syscall.Flock(fd, syscall.LOCK_UN) }
}
