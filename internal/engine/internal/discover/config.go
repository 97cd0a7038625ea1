// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Config configures a [Watcher] and all its directories.
type Config struct {
	Finder

	Include     []string // doublestar patterns, relative to the directory
	Observe     bool     // open rings without locking or changing them
	AllowedUIDs []uint32 // owners whose rings are opened; any if empty
	Resource    Resource // of all agents
	Stores      *Stores  // how stores are read; nil if they are ignored

	Now      func() time.Time                        // the clock
	Searched func(source string, took time.Duration) // receives the duration of each search for directories; may be nil
}

// mayContain reports whether a pattern can match a name in the subdirectory dir.
func (c *Config) mayContain(dir string) bool {
	depth := strings.Count(dir, "/") + 1
	return slices.ContainsFunc(c.Include, func(p string) bool {
		parts := strings.Split(p, "/")
		switch {
		case strings.Contains(p, "**") && depth < maxDepth:
			return true
		case len(parts) <= depth:
			return false
		default: // a slash in braces doesn't separate parts
			return strings.Contains(p, "{") || doublestar.MatchUnvalidated(strings.Join(parts[:depth], "/"), dir)
		}
	})
}

// matchesAny reports whether a name matches at least one of the doublestar patterns,
// which must be valid.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}

// CheckDirectories checks a list of directories. It rejects a directory that is
// listed twice, because a ring has one consumer.
func CheckDirectories(dirs []string) error {
	seen := make(map[string]bool)
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		switch {
		case dir == "":
			err = errors.New("a path is empty: write a path, such as /run/nixl")
		case seen[abs]:
			err = fmt.Errorf("%s is listed twice", dir)
		}
		if err != nil {
			return fmt.Errorf("directories: %w", err)
		}
		seen[abs] = true
	}
	return nil
}

// CheckPatterns checks a list of doublestar patterns of names relative to a directory. The error names the
// list as key.
func CheckPatterns(key string, patterns []string) error {
	var errs []error
	for _, p := range patterns {
		clean, _, _ := strings.Cut(p, "{") // a slash in braces doesn't separate parts
		switch {
		case !doublestar.ValidatePattern(p):
			errs = append(errs, fmt.Errorf("%s: %q is not a valid pattern", key, p))
		case p == "", strings.HasSuffix(p, "/"), clean != "" && !filepath.IsLocal(clean), strings.HasPrefix(p, "./"):
			errs = append(errs, fmt.Errorf("%s: %q matches nothing: patterns match names relative to the directory, such as *, decode-* or pod/**", key, p))
		}
	}
	return errors.Join(errs...)
}
