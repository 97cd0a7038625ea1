// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flock

import (
	"errors"
	"os"
	"syscall"
)

// setLock is F_OFD_SETLK: the lock belongs to the open file, so that it also excludes another
// one of the same process.
const setLock = 37

// Own locks a file for its only writer. It returns false if another open file has the lock. The
// lock is independent of [Lock]: consumers of rings use that.
func Own(f *os.File) bool {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Len: 1} // from the start of the file
	err := syscall.FcntlFlock(f.Fd(), setLock, &lock)
	return !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES)
}
