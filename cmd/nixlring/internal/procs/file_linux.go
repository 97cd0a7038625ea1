// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"os"
	"syscall"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// FileOf identifies the file at a path.
func FileOf(path string) (id ringbuf.FileID, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return id, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id = ringbuf.FileID{Dev: st.Dev, Ino: st.Ino}
	}
	return id, nil
}
