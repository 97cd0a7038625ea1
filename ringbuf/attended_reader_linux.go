//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Attended reports whether another process has the ring open.
func (r *Reader) Attended() (bool, error) {
	kind := unix.F_WRLCK
	if r.mode == Observe {
		kind = unix.F_RDLCK
	}
	switch _, err := unix.FcntlInt(r.file.Fd(), unix.F_SETLEASE, kind); {
	case errors.Is(err, unix.EAGAIN):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("ring %s: take a lease: %w", r.path, err)
	}
	if _, err := unix.FcntlInt(r.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		return false, fmt.Errorf("ring %s: give back a lease: %w", r.path, err)
	}
	return false, nil
}

// Idle reports whether nothing in the ring is new and nothing is wrong with it.
func (r *Reader) Idle() bool {
	s, err := r.look()
	return err == nil && s.pending == 0
}
