// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package patherr

import "io/fs"

// Owner returns 0: on this platform, files have no user IDs.
func Owner(fs.FileInfo) (uid, gid uint32) { return 0, 0 }
