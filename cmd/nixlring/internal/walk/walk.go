// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package walk lists the files in a directory of rings.
package walk

import (
	"io/fs"
	"iter"
	"path/filepath"
)

// Entry is a file or a directory.
type Entry struct {
	Path string
	fs.DirEntry
}

// Dir returns dir and its files in lexical order. With recursive, it also returns
// subdirectories and their files, because the ring of an agent whose name contains a slash
// is in a subdirectory. If dir is a file, Dir returns only this file.
//
// If a directory can't be read, Dir returns it a second time, with an error, and continues. If
// dir itself doesn't exist, the DirEntry is nil.
func Dir(dir string, recursive bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		// WalkDir returns nil, because all errors go to yield.
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != dir && !recursive {
				return fs.SkipDir
			}
			if !yield(Entry{path, d}, err) {
				return fs.SkipAll
			}
			return nil
		})
	}
}
