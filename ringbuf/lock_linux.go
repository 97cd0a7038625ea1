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
// lock. Closing f or exiting the process releases it.
func lock(f *os.File, st *unix.Stat_t) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		device := fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev))
		return &LockedError{PID: flock.Holders("/proc/locks")[flock.Key(device, st.Ino)]}
	case err != nil:
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}
