// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// Backing is the file behind a ring's memory, as far as the protocol needs it.
// [OpenReader] and [Create] provide their own. Tests and simulators that keep a
// ring in plain memory implement it in a few lines.
type Backing interface {
	// Stat returns the file's size and the time of its last change.
	Stat() (FileState, error)
	// Guard runs fn. A fault in the ring's memory ends fn; Guard then returns
	// an error that wraps [ErrShrunk] or ENOSPC. Other panics propagate.
	Guard(fn func()) error
}

// FileState is the part of a ring file's metadata that the protocol needs.
type FileState struct {
	Size    int64 // bytes
	Changed int64 // st_ctime, in nanoseconds since the epoch
	Age     int64 // nanoseconds since Changed, by the same clock

	Dev, Ino uint64 // identify the file; 0 for memory
}

// checkMemory returns an error if mem can't hold a ring of the layout.
func checkMemory(mem []byte, l Layout, capacity uint64) error {
	switch {
	case !nativeOrder:
		return errBigEndian
	case len(mem) == 0 || !aligned(mem):
		return fmt.Errorf("%w: memory is not aligned to 8 bytes", ErrInvalid)
	case int64(len(mem)) != l.FileSize(capacity):
		return fmt.Errorf("%w: %d bytes of memory for a ring of %d", ErrInvalid, len(mem), l.FileSize(capacity))
	}
	return nil
}
