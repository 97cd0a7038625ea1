// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"io"
	"os"
)

// Is says whether the file at a path begins as recordings do.
func Is(path string) bool {
	// Nothing but a regular file is opened: that may have effects of its own.
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [len(magic) - 1]byte // whatever its version
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == magic[:len(magic)-1]
}

// Rings reads a recording and gives the names of its rings. Of one that is cut
// or damaged they are those that a [Player] comes to.
func Rings(in io.Reader) (names []string, err error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	known := make(map[int]bool)
	var rec Record
	for r.Next(&rec) == nil {
		if rec.Op == OpOpen && !known[rec.Ring] {
			known[rec.Ring] = true
			names = append(names, rec.Name)
		}
	}
	return names, nil
}
