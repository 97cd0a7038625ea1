// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Reasons why a ring can't be opened. Every error that this package returns wraps
// one of these, [fs.ErrNotExist] or [fs.ErrPermission].
var (
	// ErrNotRing reports a file that is not a ring.
	ErrNotRing = errors.New("not a NIXL telemetry ring")
	// ErrNotRegular reports a directory, symbolic link, FIFO, socket or
	// device. Such files are never opened.
	ErrNotRegular = files.ErrNotRegular
	// ErrNotReady reports a ring that its agent hasn't finished creating, or
	// failed to create: the size or the version is still 0. Try again later. An error
	// that also wraps ErrNotRing means that the file is a ring only if this changes soon.
	ErrNotReady = errors.New("ring not ready")
	// ErrInvalid reports a ring whose header contradicts itself or the file.
	ErrInvalid = errors.New("invalid ring")
	// ErrHole is an ErrInvalid: the header claims events in a part of the file that was
	// never written. Reading them would allocate memory.
	ErrHole = fmt.Errorf("%w: the header claims events, but nothing was ever written", ErrInvalid)
	// ErrUnknownVersion reports a ring with a layout that this package doesn't know.
	ErrUnknownVersion = errors.New("unknown ring version")
	// ErrLocked reports a ring that another consumer of this project has
	// locked.
	ErrLocked = files.ErrLocked
	// ErrFileSystem reports a ring on a file system where reading a page can block
	// forever, or can allocate memory without limit.
	ErrFileSystem = files.ErrFileSystem
)

// unfinished returns an [ErrNotReady] for a moment, because an agent creates its ring in steps.
// A file that stays like this is an [ErrNotRing].
func unfinished(why string) error {
	return fmt.Errorf("%w: %s, so an agent is creating it, or it is %w", ErrNotReady, why, ErrNotRing)
}

// Errors of an open ring. After ErrRestarted and ErrShrunk, the caller may open
// the file again. After ErrLapped and ErrForeignRead, the reader continues.
var (
	// ErrRestarted reports that an agent has restarted on the ring's file.
	ErrRestarted = errors.New("agent restarted on this ring")
	// ErrShrunk reports that the file is now smaller than its ring, so part of
	// the mapped memory is gone.
	ErrShrunk = errors.New("ring file was truncated")
	// ErrLapped reports that an observer has missed events: a consumer
	// committed them and the agent has overwritten them. The observer
	// continues after them.
	ErrLapped = errors.New("events were overwritten before they could be observed")
	// ErrForeignRead reports that another process has moved the read position. The
	// reader continues from the new position and may have missed the events in between.
	ErrForeignRead = errors.New("another process consumed events of this ring")
)

// Reasons why a writer rejects an event.
var (
	// ErrFull reports that the ring holds capacity-1 events. The caller must
	// drop the event, as an agent does.
	ErrFull = errors.New("ring is full")
	// ErrNoType reports an event without a type, for a ring whose layout has
	// no names.
	ErrNoType = errors.New("layout needs an event type")
)
