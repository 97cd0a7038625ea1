// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package walk finds the files of a directory of rings.
package walk

import (
	"io/fs"
	"iter"
	"path/filepath"
)

// Entry is a file or a folder.
type Entry struct {
	Path string
	fs.DirEntry
}

// Dir returns the files of a directory in the order of their names, and the folders
// that they are in, the directory first. With recursive, it also returns the files
// of subfolders, because an agent whose name has a slash has its ring in one. If
// the directory is a file, it returns this file.
//
// A folder that can't be read comes with an error, after itself. The walk continues
// after an error. If the directory itself doesn't exist, its DirEntry is nil.
func Dir(dir string, recursive bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		// What the walk returns is nil: all errors go to yield.
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
