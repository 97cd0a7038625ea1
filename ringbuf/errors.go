// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Reasons why a ring can't be opened. Every error that this package returns wraps
// one of these or [fs.ErrNotExist], or is one of the types below.
var (
	// ErrNotRing reports a file that is not a ring.
	ErrNotRing = errors.New("not a NIXL telemetry ring")
	// ErrNotRegular reports a directory, symbolic link, FIFO, socket or
	// device. Such files are never opened.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotDir reports a symbolic link or any other file in place of a
	// directory.
	ErrNotDir = errors.New("not a directory")
	// ErrNotReady reports a ring that its agent hasn't finished creating, or
	// failed to create: the size or the version is still 0. Try again later. An error
	// that also wraps ErrNotRing means that the file is a ring only if this changes soon.
	ErrNotReady = errors.New("ring not ready")
	// ErrInvalid reports a ring whose header contradicts itself or the file.
	ErrInvalid = errors.New("invalid ring")
	// ErrLocked reports a ring that another consumer of this project has
	// locked.
	ErrLocked = errors.New("ring is already being consumed")
)

// unfinishedError is an ErrNotReady for a moment, because an agent creates its ring in steps. A
// file that stays like this is an ErrNotRing.
type unfinishedError struct{ why string }

func (e *unfinishedError) Error() string {
	return fmt.Sprintf("%v: %s, so an agent is creating it, or it is %v", ErrNotReady, e.why, ErrNotRing)
}

// Is reports whether target is [ErrNotReady] or [ErrNotRing].
func (e *unfinishedError) Is(target error) bool { return target == ErrNotReady || target == ErrNotRing }

// Errors of an open ring. After ErrRestarted and ErrShrunk, the caller may open
// the file again. After ErrLapped, the reader continues.
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
	// ErrClosed reports that the reader or writer is closed.
	ErrClosed = os.ErrClosed
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

// UnknownVersionError reports a ring with a layout that this package doesn't know.
type UnknownVersionError struct{ Version int32 }

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("unknown ring version %d (versions 1 to 5 are known): "+
		"this agent needs a newer reader; the ring stays unchanged", e.Version)
}

// PermissionError reports a ring that this process lacks the permission to open.
type PermissionError struct {
	Owner uint32 // uid of the file's owner
	UID   uint32 // effective uid of this process
	Mode  Mode

	ReadOnly  bool // the file system is mounted read-only
	Protected bool // the file's mode gives nobody write permission
}

func (e *PermissionError) Error() string {
	switch {
	case e.ReadOnly:
		return "no permission to consume: the ring is on a read-only file system; " +
			"consuming writes to the ring, so mount it writable, or observe instead"
	case e.Protected:
		return "no permission to consume: the file's mode gives nobody write permission, as for a recorded ring; " +
			"consuming writes to the ring, so run chmod u+w on it or on a copy, or observe instead"
	case e.Mode == Observe:
		return fmt.Sprintf("no permission to read: the file belongs to uid %d, this process runs as uid %d; "+
			"run as uid %d or root", e.Owner, e.UID, e.Owner)
	}
	return fmt.Sprintf("no permission to consume: the ring belongs to uid %d, this process runs as uid %d; "+
		"consuming writes to the ring, so run as uid %d or root, or observe instead", e.Owner, e.UID, e.Owner)
}

// Is reports whether target is [fs.ErrPermission].
func (e *PermissionError) Is(target error) bool { return target == fs.ErrPermission }

// OwnerError reports a ring whose owner is not among those that [OwnedBy] allows.
type OwnerError struct{ Owner uint32 }

func (e *OwnerError) Error() string {
	return fmt.Sprintf("the file belongs to uid %d, which is not allowed", e.Owner)
}

// Is reports whether target is [fs.ErrPermission].
func (e *OwnerError) Is(target error) bool { return target == fs.ErrPermission }

// LockedError is an [ErrLocked] with the process that holds the lock.
type LockedError struct{ PID int } // 0 if unknown

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return ErrLocked.Error() + ": two consumers would each miss events; stop one, or observe instead"
	}
	return fmt.Sprintf("%v by process %d: two consumers would each miss events; stop one, or observe instead", ErrLocked, e.PID)
}

// Is reports whether target is [ErrLocked].
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// ForeignReadError reports that another process has moved the read position. The
// reader continues from the new position and may have missed the events in between.
type ForeignReadError struct{ From, To uint64 }

func (e *ForeignReadError) Error() string {
	return fmt.Sprintf("another process consumed events of this ring (read position moved from %d to %d)", e.From, e.To)
}

// HoleError is an [ErrInvalid]: the header claims events in a part of the file that was
// never written. Reading them would allocate memory.
type HoleError struct{ Offset int64 } // of the part in the file

func (e *HoleError) Error() string {
	return fmt.Sprintf("%v: the header claims events, but nothing was ever written at byte %d of the file; "+
		"remove the file, and restart its agent if there is one", ErrInvalid, e.Offset)
}

// Is reports whether target is [ErrInvalid].
func (e *HoleError) Is(target error) bool { return target == ErrInvalid }

// FileSystemError reports a ring on a file system where reading a page can block
// forever, or can allocate memory without limit.
type FileSystemError struct {
	Type string // its name, or its number as statfs(2) returns it
}

func (e *FileSystemError) Error() string {
	risk := "can block this process forever"
	if e.Type == ramfs {
		risk = "allocates memory without limit"
	}
	return fmt.Sprintf("the file system is %s, which %s; "+
		"set NIXL_TELEMETRY_DIR to tmpfs, such as /dev/shm, or to a local disk", e.Type, risk)
}

// ramfs is the type of a file system that has no limit and doesn't report holes.
const ramfs = "ramfs"
