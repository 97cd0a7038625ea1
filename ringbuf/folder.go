// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "time"

// FileInfo is what can be told of a file without opening it.
type FileInfo struct {
	ID      FileID
	Mode    uint32 // the kind and the permissions, as stat(2) has them
	Size    int64
	ModTime time.Time
}

// From stat(2): which bits of a mode are the kind, and that of a directory.
const (
	kindBits = 0o170000
	kindDir  = 0o040000
)

// IsDir says whether the file is a directory.
func (i FileInfo) IsDir() bool { return i.Mode&kindBits == kindDir }

// Same says whether nothing shows that the file has changed in between.
func (i FileInfo) Same(j FileInfo) bool {
	return i.ID == j.ID && i.Mode == j.Mode && i.Size == j.Size && i.ModTime.Equal(j.ModTime)
}
