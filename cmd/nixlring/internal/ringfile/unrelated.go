// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// startingFor is how long an empty file may belong to an agent that is creating its ring.
// Real agents take far less than a second.
const startingFor = time.Minute

// unrelated reports whether a file that isn't a readable ring or store has nothing to do with
// telemetry, like most files in /tmp.
func unrelated(path string, err error, info fs.FileInfo) bool {
	switch {
	case errors.Is(err, ringbuf.ErrNotReady): // comes first, because the error may also be an ErrNotRing
		return !unready(path, info)
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular):
		return true
	case errors.Is(err, fs.ErrPermission):
		return !ringSize(info.Size()) && !mpstore.IsName(filepath.Base(path)) // the content can't be read
	}
	return false
}

// unready reports whether a file that is empty or has version 0 may be a ring that an
// agent is creating or failed to create. Many other files also have zeros at this offset.
func unready(path string, info fs.FileInfo) bool {
	young := time.Since(info.ModTime()) <= startingFor
	if info.Size() == 0 {
		return young
	}
	h, _ := ringbuf.Peek(path) // returns ErrNotReady
	switch {
	case !ringSize(info.Size()), h.WritePos != 0, h.ReadPos != 0:
		return false // an agent sets the size first, and the positions before the version
	case h.Capacity == 0:
		return young && h == ringbuf.Header{}
	}
	for _, l := range ringbuf.Layouts() {
		if h.Capacity <= uint64(info.Size()) && info.Size() == l.FileSize(h.Capacity) {
			return true
		}
	}
	return young // an agent that restarts with another capacity
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
