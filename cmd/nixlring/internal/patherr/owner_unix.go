// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package patherr

import (
	"io/fs"
	"syscall"
)

// Owner returns the user ID and the group ID of a file.
func Owner(info fs.FileInfo) (uid, gid uint32) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid, st.Gid
	}
	return 0, 0
}
