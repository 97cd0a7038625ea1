// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Patterns returns the patterns for the names of agents. With recursive, the patterns in
// include also apply in subdirectories.
func Patterns(include []string, recursive bool) []string {
	if !recursive {
		return include
	}
	const below = "**/" // the directory itself and all subdirectories
	if len(include) == 0 {
		return []string{below + "*"}
	}
	var list []string
	for _, p := range include {
		list = append(list, p, below+p)
	}
	return list
}

// patterns are patterns of the names of agents.
type patterns []string

// match reports whether the patterns include an agent.
func (list patterns) match(name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}

// subdirectories reports whether agents in subdirectories are included.
func (c *Config) subdirectories() bool {
	return c.Recursive || slices.ContainsFunc(c.Include, func(p string) bool { return strings.Contains(p, "/") || strings.Contains(p, "**") })
}

// countExcluded counts the rings of the directory. It opens all files.
func (s *Rings) countExcluded() (n int) {
	if len(s.cfg.Include) == 0 || s.cfg.Directory == "" {
		return 0
	}
	const most = 1 << 12 // files
	seen := 0
	_ = filepath.WalkDir(s.cfg.Directory, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // a directory that can't be read counts as empty
		case d.IsDir():
			if path != s.cfg.Directory && !s.cfg.subdirectories() {
				return fs.SkipDir
			}
		case seen == most:
			return fs.SkipAll
		default:
			seen++
			if _, err := ringbuf.Peek(path); err == nil {
				n++
			}
		}
		return nil //nolint:nilerr // a directory that can't be read counts as empty
	})
	return n
}
