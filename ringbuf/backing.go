// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// Backing is the file behind a ring's memory, as far as the protocol needs it.
// [OpenReader] and [Create] bring their own; tests and simulators that keep a
// ring in plain memory implement it in a few lines.
type Backing interface {
	// Stat returns the file's size and the time of its last change.
	Stat() (FileState, error)
	// Guard runs fn. A fault in the ring's memory ends fn; Guard then returns
	// an error that wraps [ErrShrunk] or ENOSPC. All other panics pass.
	Guard(fn func()) error
}

// FileState is what the protocol asks about a ring's file.
type FileState struct {
	Size    int64 // bytes
	Changed int64 // st_ctime, in nanoseconds since the epoch
	Age     int64 // nanoseconds since Changed, by the same clock
}

// FileID identifies a file, also if another one gets the same path later.
type FileID struct{ Dev, Ino uint64 }

// checkMemory reports why memory can't hold the ring of a layout.
func checkMemory(mem []byte, l Layout, capacity uint64) error {
	switch {
	case !nativeOrder:
		return errBigEndian
	case len(mem) == 0 || !aligned(mem):
		return fmt.Errorf("%w: its memory isn't aligned to 8 bytes", ErrInvalid)
	case int64(len(mem)) != l.FileSize(capacity):
		return fmt.Errorf("%w: %d bytes of memory for a ring of %d", ErrInvalid, len(mem), l.FileSize(capacity))
	}
	return nil
}
