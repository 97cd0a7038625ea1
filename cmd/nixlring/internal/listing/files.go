// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package listing finds the files of directories.
package listing

import (
	"io/fs"
	"iter"
	"path/filepath"
)

// File is a file or a directory.
type File struct {
	Path string
	fs.DirEntry
}

// Files returns dir and its files in lexical order. With recursive, it also returns
// subdirectories and their files, because the ring of an agent whose name contains a slash
// is in a subdirectory. If dir is a file, Files returns only this file.
//
// If a directory can't be read, Files returns it a second time, with an error, and continues. If
// dir itself doesn't exist, the DirEntry is nil.
func Files(dir string, recursive bool) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		// WalkDir returns nil, because all errors go to yield.
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != dir && !recursive {
				return fs.SkipDir
			}
			if !yield(File{path, d}, err) {
				return fs.SkipAll
			}
			return nil
		})
	}
}
