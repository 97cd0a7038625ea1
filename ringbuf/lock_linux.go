// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/flock"
)

// lock locks the ring f against other consumers of this project; agents take no
// lock. Closing f or exiting the process releases it. If the ring is locked, holder
// finds the process for the error.
func lock(f *os.File, st *unix.Stat_t, holder func(FileID) (pid int)) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return &LockedError{PID: holder(FileID{Dev: st.Dev, Ino: st.Ino})}
	case err != nil:
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// lockHolder returns the process that has locked a file, or 0 if it is unknown.
func lockHolder(id FileID) (pid int) {
	holders, _ := flock.Holders("/proc/locks")
	return holders[flock.Key(flock.Device(id.Dev), id.Ino)]
}
