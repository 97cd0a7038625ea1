// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package session

import (
	"errors"
	"os"
	"syscall"
)

// lock locks the file of a running session until it is closed. If the program
// crashes, the kernel closes it. A file system without locks is not an error.
func lock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// locked reports whether a running session has locked the file.
func locked(f *os.File) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
