// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Why a ring can't be opened. Every error that this package returns wraps one
// of these, [fs.ErrNotExist], or is one of the types below.
var (
	// ErrNotRing is a file that isn't a ring at all.
	ErrNotRing = errors.New("not a NIXL telemetry ring")
	// ErrNotRegular is a directory, symbolic link, FIFO, socket or device:
	// it isn't opened.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotFolder is what should be a folder, and is a symbolic link or any
	// other file.
	ErrNotFolder = errors.New("not a folder")
	// ErrNotReady is a ring whose agent hasn't finished creating it, or
	// failed to: the size or the version is still 0. Try again later.
	ErrNotReady = errors.New("ring not ready")
	// ErrInvalid is a ring whose header contradicts itself or its file.
	ErrInvalid = errors.New("invalid ring")
	// ErrLocked is a ring that another consumer of this project holds.
	ErrLocked = errors.New("ring is being consumed already")
)

// What may come of an open ring. After ErrRestarted and ErrShrunk its file may
// be opened again; after ErrLapped the reader goes on.
var (
	// ErrRestarted says that an agent has restarted on the ring's file.
	ErrRestarted = errors.New("agent restarted on this ring")
	// ErrShrunk says that the file has become smaller than its ring: mapped
	// memory is gone.
	ErrShrunk = errors.New("ring file was truncated")
	// ErrLapped says that an observer has missed events: a consumer took them
	// and the agent has written over them. The observer has gone on behind.
	ErrLapped = errors.New("events were overwritten before they could be observed")
	// ErrClosed says that the reader or writer is closed.
	ErrClosed = os.ErrClosed
)

// Why a writer doesn't take an event.
var (
	// ErrFull says that the ring holds capacity-1 events. An agent drops the
	// event then, and so must the caller.
	ErrFull = errors.New("ring is full")
	// ErrNoType is an event without a type, for a ring whose layout has no
	// names.
	ErrNoType = errors.New("layout needs an event type")
)

// UnknownVersionError is a ring of a layout that this package doesn't know.
type UnknownVersionError struct{ Version int32 }

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("unknown ring version %d (known are 1 to 5): "+
		"this agent needs a newer reader; the ring is left as it is", e.Version)
}

// PermissionError is a ring that this process may not open as it needs to.
type PermissionError struct {
	Owner uint32 // uid that the file belongs to
	UID   uint32 // effective uid of this process
	Mode  Mode

	ReadOnly bool // the file system is mounted read-only
}

func (e *PermissionError) Error() string {
	switch {
	case e.ReadOnly:
		return "no permission to consume: the ring is on a read-only file system; " +
			"consuming writes to the ring, so mount it writable, or observe instead"
	case e.Mode == Observe:
		return fmt.Sprintf("no permission to read: the file belongs to uid %d, this process runs as uid %d; "+
			"run as uid %d or root", e.Owner, e.UID, e.Owner)
	}
	return fmt.Sprintf("no permission to consume: the ring belongs to uid %d, this process runs as uid %d; "+
		"consuming writes to the ring, so run as uid %d or root, or observe instead", e.Owner, e.UID, e.Owner)
}

// Is makes the error an [fs.ErrPermission].
func (e *PermissionError) Is(target error) bool { return target == fs.ErrPermission }

// OwnerError is a ring whose owner isn't one of those that [OwnedBy] allows.
type OwnerError struct{ Owner uint32 }

func (e *OwnerError) Error() string {
	return fmt.Sprintf("the file belongs to uid %d, which isn't allowed", e.Owner)
}

// Is makes the error an [fs.ErrPermission].
func (e *OwnerError) Is(target error) bool { return target == fs.ErrPermission }

// LockedError is an [ErrLocked] that knows who holds the ring.
type LockedError struct{ PID int } // 0 where the system doesn't tell

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return ErrLocked.Error() + ": two consumers would take events from each other; stop one, or observe instead"
	}
	return fmt.Sprintf("%v by process %d: two consumers would take events from each other; stop one, or observe instead", ErrLocked, e.PID)
}

// Is makes the error an [ErrLocked].
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// ForeignReadError says that somebody else has moved the read position. The
// reader has gone on from there; events in between may be lost to it.
type ForeignReadError struct{ From, To uint64 }

func (e *ForeignReadError) Error() string {
	return fmt.Sprintf("another reader took events from this ring (read position %d became %d)", e.From, e.To)
}

// FileSystemError is a ring on a file system whose pages may never arrive.
type FileSystemError struct {
	Type string // its name, or its number as statfs(2) returns it
}

func (e *FileSystemError) Error() string {
	return fmt.Sprintf("the file system is %s, which can make this whole process wait for ever; "+
		"use tmpfs such as /dev/shm, or a local disk, for NIXL_TELEMETRY_DIR", e.Type)
}
