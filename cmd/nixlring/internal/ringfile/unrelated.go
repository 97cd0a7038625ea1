// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// unrelated reports whether a file that isn't a readable ring or store has nothing to do with
// telemetry, like most files in /tmp.
func unrelated(path string, err error, info fs.FileInfo) bool {
	switch {
	case errors.Is(err, ringbuf.ErrNotReady): // comes first, because the error may also be an ErrNotRing
		// An agent sets the size first, then the capacity, and the positions when its ring is ready. Many other files
		// also have zeros where a ring has its version.
		h, _ := ringbuf.Peek(path)
		return !ringSize(info.Size()) || h.Capacity == 0 || h.WritePos != 0 || h.ReadPos != 0
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular):
		return true
	case errors.Is(err, fs.ErrPermission):
		return !ringSize(info.Size()) && !mpstore.IsName(filepath.Base(path)) // the content can't be read
	}
	return false
}

// ringSize reports whether a file has the size of a header and a whole number of slots in
// some layout. The number of slots doesn't have to be a power of two, because agents with
// an invalid capacity also create such files.
func ringSize(size int64) bool {
	for _, l := range ringbuf.Layouts() {
		if slots := size - ringbuf.HeaderSize; slots > 0 && slots%int64(l.EventSize()) == 0 {
			return true
		}
	}
	return false
}
