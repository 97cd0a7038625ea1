// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"os"
	"syscall"
)

// held reports whether the process of a store runs: it holds a lock on the store
// until it exits. The error says that the kernel can't tell. The lock that this
// takes to find out is released at once: NIXL's own reader takes one, too.
func held(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}
