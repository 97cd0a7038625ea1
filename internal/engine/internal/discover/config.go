// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// OpenDir opens the directory name below dir.
type OpenDir = func(dir, name string) (*files.Dir, error)

// ProbeInterval is the interval at which a directory is walked and its rings are
// probed. A directory that has changed is walked sooner.
const ProbeInterval = 2 * time.Second

// Config configures a [Directory].
type Config struct {
	Dir         string   // contains one ring per agent, named after the agent
	Include     []string // doublestar patterns, relative to Dir; * if empty
	Exclude     []string
	Observe     bool         // open rings without locking or changing them
	AllowedUIDs []uint32     // owners whose rings are opened; any if empty
	Holder      drain.Holder // of the rings; Dir itself if empty
	Resource    Resource     // of all agents

	// Identify identifies agents. If it is nil, the agent's ID is the ring's path.
	Identify Identify
	// WalkEvery is the interval between walks; ProbeInterval if zero.
	WalkEvery time.Duration
	// Discovered marks a directory that was discovered. Rings that another directory also
	// contains aren't reported.
	Discovered bool
	// Hold keeps the directory open between walks, because opening it takes many system calls.
	// An open directory prevents unmounting its file system in this mount namespace.
	Hold bool

	// Stores configures how stores are read; nil if they are ignored.
	Stores *StoreConfig
	// HasRings reports whether the directory may contain rings, and not only stores;
	// always if nil.
	HasRings func() bool

	// CloseExited closes rings soon after their agents have exited, because an open ring
	// prevents unmounting its volume.
	CloseExited bool

	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// OpenDir opens a directory at or below Dir; files.OpenDir if nil. It returns
	// errGone if the directory was removed with its container.
	OpenDir OpenDir
}

// withDefaults sets defaults and makes the directory absolute.
func (c Config) withDefaults() (_ Config, err error) {
	if len(c.Include) == 0 {
		c.Include = []string{"*"}
	}
	if c.Identify == nil {
		c.Identify = func(a drain.Agent, _ *ringbuf.Reader, _ time.Time) (drain.Agent, Mapped) { return a, MaybeMapped }
	}
	if c.WalkEvery == 0 {
		c.WalkEvery = ProbeInterval
	}
	if c.HasRings == nil {
		c.HasRings = func() bool { return true }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OpenDir == nil {
		c.OpenDir = files.OpenDir
	}
	c.Dir, err = filepath.Abs(c.Dir)
	if c.Holder == (drain.Holder{}) {
		c.Holder = drain.Holder{Place: c.Dir, Shared: true}
	}
	return c, err
}

// maxFiles returns how many files a walk of the directory checks. A directory that containers may
// share may have the rings of all agents of a host.
func (c *Config) maxFiles() int {
	if c.Holder.Shared {
		return 1 << 16
	}
	return 1 << 12
}

// CheckDirectories checks a list of directories. It rejects a directory that is
// listed twice, because a ring has one consumer.
func CheckDirectories(dirs []string) error {
	seen := make(map[string]bool)
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		switch {
		case dir == "":
			return errors.New("directories: a path is empty: write a path, such as /run/nixl")
		case err != nil:
			return fmt.Errorf("directories: %s: %w", dir, err)
		case seen[abs]:
			return fmt.Errorf("directories: %s is listed twice", dir)
		}
		seen[abs] = true
	}
	return nil
}

// CheckPatterns checks a list of doublestar patterns. It rejects a pattern that
// can't match the name of any ring. The error names the list as key.
func CheckPatterns(key string, patterns []string) error {
	var errs []error
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			errs = append(errs, fmt.Errorf("%s: %q is not a valid pattern", key, p))
		} else if reason := unmatchable(p); reason != "" {
			errs = append(errs, fmt.Errorf("%s: %q %s: patterns match names relative to the directory, such as *, decode-* or pod/**", key, p, reason))
		}
	}
	return errors.Join(errs...)
}

// unmatchable returns the reason why a pattern matches nothing, or "" if it may
// match. Names of rings are relative and clean.
func unmatchable(pattern string) string {
	parts := strings.Split(pattern, "/")
	switch {
	case pattern == "":
		return "matches nothing"
	case parts[0] == "":
		return "begins with a slash"
	case strings.Contains(pattern, "{"): // a slash in braces doesn't separate parts
		return ""
	case parts[len(parts)-1] == "":
		return "ends with a slash"
	case slices.Contains(parts, "."), slices.Contains(parts, ".."), slices.Contains(parts, ""):
		return `contains ".", ".." or an empty path element`
	default:
		return ""
	}
}

// matches reports whether a name relative to the directory may be that of a ring: the
// include and exclude patterns select it, and NIXL doesn't use it for another file.
func (c *Config) matches(name string) bool {
	base := path.Base(name)
	return c.selects(name) && !mpstore.IsName(base) && !mpstore.IsAuxiliary(base) && c.HasRings()
}

// selects reports whether the include and exclude patterns select a name: that of a ring,
// relative to the directory, or that of an agent with stores.
func (c *Config) selects(name string) bool {
	return MatchesAny(c.Include, name) && !MatchesAny(c.Exclude, name)
}

// mayContain reports whether a pattern can match a name in the subdirectory dir.
func (c *Config) mayContain(dir string) bool {
	if MatchesAny(c.Exclude, dir) {
		return false
	}
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

// MatchesAny reports whether a name matches at least one of the doublestar patterns,
// which must be valid.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}
