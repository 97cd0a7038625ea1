// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/walk"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Patterns returns the patterns that the names of agents must match: include, with
// recursive also in subfolders.
func Patterns(include []string, recursive bool) []string {
	if !recursive {
		return include
	}
	const below = "**/" // any folder, the directory itself too
	if len(include) == 0 {
		return []string{below + "*"}
	}
	var list []string
	for _, p := range include {
		list = append(list, p, below+p)
	}
	return list
}

// deep says whether agents in subfolders are asked for.
func (c *SourceConfig) deep() bool {
	return c.Recursive || slices.ContainsFunc(c.Include, func(p string) bool { return strings.Contains(p, "/") || strings.Contains(p, "**") })
}

// countLeft counts the rings of the directory, none of which matches. It looks
// at each file, and so not for each sample.
func (s *Source) countLeft(now time.Time) int {
	if len(s.cfg.Include) == 0 || !s.counted.IsZero() && now.Sub(s.counted) < lookEvery {
		return s.left
	}
	const most = 1 << 12 // files
	files := 0
	s.counted, s.left = now, 0
	for f, err := range walk.Dir(s.cfg.Directory, s.cfg.deep()) {
		if err != nil || f.IsDir() { // a folder that can't be read counts as empty
			continue
		}
		if files++; files > most {
			break
		}
		if _, err := ringbuf.Peek(f.Path); err == nil {
			s.left++
		}
	}
	return s.left
}
