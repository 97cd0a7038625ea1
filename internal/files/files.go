// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package files opens and locks files of other users safely: through open directories, without
// following links, only regular files, and only on file systems that can't hang.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

var (
	// ErrNotRegular reports a directory, symbolic link, FIFO, socket or device. Such files
	// are never opened.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotDir reports a symbolic link or any other file in place of a directory.
	ErrNotDir = errors.New("not a directory")
	// ErrLocked reports a ring that another consumer of this project has locked.
	ErrLocked = errors.New("ring is already being consumed")
	// ErrFileSystem reports a file system where reading a page can block forever, or can
	// allocate memory without limit.
	ErrFileSystem = errors.New("unsupported file system")
	// ErrOwner reports a file whose owner is not among those that are allowed.
	ErrOwner = fmt.Errorf("is not allowed (%w)", fs.ErrPermission)
)

// ID identifies a file, even if another file later gets the same path.
type ID struct{ Dev, Ino uint64 }

// Info describes a file without opening it. Equal descriptions are those of one file, apparently unchanged.
type Info struct {
	ID      ID
	Mode    uint32 // file type and permissions, as in stat(2)
	Owner   uint32 // uid
	Size    int64
	ModTime time.Time
}

// The file type in a mode, from stat(2).
const (
	typeMask = 0o170000
	typeDir  = 0o040000
)

// IsDir reports whether the file is a directory.
func (i Info) IsDir() bool { return i.Mode&typeMask == typeDir }

// PermissionError reports a file that this process lacks the permission to open.
type PermissionError struct {
	Owner uint32 // uid of the file's owner
	UID   uint32 // effective uid of this process
	Write bool   // whether it was opened for writing

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
	case !e.Write:
		return fmt.Sprintf("no permission to read: the file belongs to uid %d, this process runs as uid %d; "+
			"run as uid %d or root", e.Owner, e.UID, e.Owner)
	}
	return fmt.Sprintf("no permission to consume: the ring belongs to uid %d, this process runs as uid %d; "+
		"consuming writes to the ring, so run as uid %d or root, or observe instead", e.Owner, e.UID, e.Owner)
}

// Is reports whether target is [fs.ErrPermission].
func (e *PermissionError) Is(target error) bool { return target == fs.ErrPermission }
