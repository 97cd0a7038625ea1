// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package session

import (
	"errors"
	"os"
	"syscall"
)

// lock marks the file of a session as in use until it is closed, which the
// kernel does if the program crashes. A file system without locks is not an
// error.
func lock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// locked reports whether a session has the file in use.
func locked(f *os.File) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
