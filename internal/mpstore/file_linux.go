// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"errors"
	"os"
	"syscall"
)

// isLocked reports whether another process holds a lock on a store. The process of a
// store holds a lock until it exits. isLocked tries to take the lock, as NIXL's own
// reader does, and releases it immediately.
func isLocked(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}
