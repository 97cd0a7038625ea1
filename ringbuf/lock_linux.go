// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// locks are the locks of this machine. Errors name the holder of a lock.
var locks = files.Locks{Path: "/proc/locks"}

// lock locks the ring f against other consumers of this project; agents take no
// lock. Closing f or exiting the process releases it.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("lock: %w", err)
	}
	by := ""
	if info, err := f.Stat(); err == nil {
		if pid := locks.Holder(files.IDOf(info)); pid != 0 {
			by = fmt.Sprintf(" by process %d", pid)
		}
	}
	return fmt.Errorf("%w%s: two consumers would each miss events; stop one, or observe instead", ErrLocked, by)
}
