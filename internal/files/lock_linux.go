// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// IsLocked reports whether another process has locked a file. It tries to share the lock, as NIXL's own
// reader of stores does, and releases it immediately.
func IsLocked(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, unix.Flock(int(f.Fd()), unix.LOCK_UN)
}

// Lock locks the ring f against other consumers of this project; agents take no lock.
// Closing f or exiting the process releases it. The error wraps [ErrLocked] if another
// consumer has the lock.
func Lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("lock: %w", err)
	}
	return fmt.Errorf("%w: two consumers would each miss events; find the other one with lslocks and stop it, or observe instead", ErrLocked)
}
