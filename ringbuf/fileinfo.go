// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "time"

// FileInfo describes a file without opening it.
type FileInfo struct {
	ID      FileID
	Mode    uint32 // file type and permissions, as in stat(2)
	Size    int64
	ModTime time.Time
}

// The file type in a mode, from stat(2).
const (
	typeMask = 0o170000
	typeDir  = 0o040000
)

// IsDir reports whether the file is a directory.
func (i FileInfo) IsDir() bool { return i.Mode&typeMask == typeDir }

// Same reports whether i and j describe the same file, apparently unchanged.
func (i FileInfo) Same(j FileInfo) bool {
	return i.ID == j.ID && i.Mode == j.Mode && i.Size == j.Size && i.ModTime.Equal(j.ModTime)
}
