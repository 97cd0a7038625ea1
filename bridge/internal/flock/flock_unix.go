// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

// Package flock locks files among programs, on Linux and macOS. The kernel releases a lock
// when the file is closed, even if the program crashes. A file system without locks is not
// an error.
package flock

import (
	"errors"
	"os"
	"syscall"
)

// Lock waits for a file's lock and returns the function that releases it.
func Lock(f *os.File) (unlock func()) {
	for errors.Is(flock(f, syscall.LOCK_EX), syscall.EINTR) {
	}
	return func() { _ = flock(f, syscall.LOCK_UN) }
}

// TryLock takes a file's lock. It returns false if another open file has it.
func TryLock(f *os.File) bool {
	return !errors.Is(flock(f, syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

func flock(f *os.File, how int) error { return syscall.Flock(int(f.Fd()), how) }
