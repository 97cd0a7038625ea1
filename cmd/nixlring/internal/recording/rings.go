// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"io"
	"os"
)

// Is reports whether the file at a path is a recording, of any version.
func Is(path string) bool {
	// Only open regular files: opening other files may have side effects.
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [len(magic) - 1]byte // without the version
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == magic[:len(magic)-1]
}

// Rings returns the names of the rings in a recording. If the recording is truncated or
// damaged, it returns the rings up to there.
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
