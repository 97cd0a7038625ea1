// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"errors"
	"io/fs"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// startingFor is how long an empty file may be an agent's that is about to make
// it a ring. That takes a real one far less than a second.
const startingFor = time.Minute

// foreign says whether a file that isn't a readable ring has nothing to do
// with telemetry. In a busy /tmp most have not.
func foreign(path string, err error, info fs.FileInfo) bool {
	switch {
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular):
		return true
	case errors.Is(err, ringbuf.ErrNotReady):
		return !unready(path, info)
	case errors.Is(err, fs.ErrPermission):
		return !ringSize(info.Size()) // what can't be read proves nothing
	}
	return false
}

// unready says whether a file, whose version is 0 or that is empty, may be what
// an agent is making a ring of, or has failed to. Many a file has zeros where
// rings have their version.
func unready(path string, info fs.FileInfo) bool {
	young := time.Since(info.ModTime()) <= startingFor
	if info.Size() == 0 {
		return young
	}
	h, _ := ringbuf.Peek(path) // its error is the one that brought us here
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
	return young // an agent that restarts with another size
}

// ringSize reports whether the header and a whole number of slots of some
// layout make up a file of a given size. A number of slots that isn't a
// power of two is a mistake that agents fail over, not a file of others.
func ringSize(size int64) bool {
	for _, l := range ringbuf.Layouts() {
		slots := size - int64(l.HeaderSize())
		if slots <= 0 || slots%int64(l.EventSize()) != 0 {
			continue
		}
		// With its header, every size that is a multiple of 16 would fit V5.
		if n := slots / int64(l.EventSize()); l < ringbuf.V5 || n&(n-1) == 0 {
			return true
		}
	}
	return false
}
