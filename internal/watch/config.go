package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Defaults of a [Config]. The run interval is NIXL's own.
const (
	DefaultRunInterval = 100 * time.Millisecond
	DefaultMaxRings    = 4096
	DefaultStaleAfter  = 5 * time.Minute
)

// MinStaleAfter is the shortest StaleAfter that makes a difference: what is
// shorter is found out by the next look through the directories.
const MinStaleAfter = rescanEvery

const (
	// rescanEvery is how often the directories are looked through. inotify
	// tells nearly everything at once, so that this is for what it misses.
	rescanEvery = 2 * time.Second
	// maxEntries bounds one look through a directory: a busy /tmp may hold
	// any number of files.
	maxEntries = 1 << 16
	// maxDepth bounds how deep a pattern with ** leads.
	maxDepth = 16
	// maxPass bounds what one drain takes from one ring, so that a ring that
	// fills as fast as it is drained doesn't hold up the others.
	maxPass = 1 << 16
	// minDrainInterval bounds how fast rings are drained that are found full.
	minDrainInterval = time.Millisecond
)

// Config says what to watch, and how. Directories is the one field that must
// be set.
type Config struct {
	Directories []string // one ring per agent is in them, named after the agent
	Include     []string // doublestar patterns, relative to the directory; * where empty
	Exclude     []string
	Mode        ringbuf.Mode
	RunInterval time.Duration // of the agents
	MaxRings    int
	AllowedUIDs []uint32 // owners whose rings are opened; any where empty
	StaleAfter  time.Duration
	Tally       tally.Config

	// Report is told what an operator may want to know. It is called with
	// locks held: it must be quick, and must not call the watcher.
	Report func(Notice)
	// Tap is shown every event, before it is committed; nil where nobody wants
	// to see them. It is called with the agent locked, from several goroutines
	// at a time for different agents, and the ring waits for it. Only the
	// agent's exported fields may be looked at.
	Tap func(*Agent, ringbuf.Batch)
	// Now is the clock; time.Now where nil.
	Now func() time.Time
}

// withDefaults fills in what isn't set and makes the directories absolute.
func (c Config) withDefaults() (Config, error) {
	if len(c.Include) == 0 {
		c.Include = []string{"*"}
	}
	if c.RunInterval == 0 {
		c.RunInterval = DefaultRunInterval
	}
	if c.MaxRings == 0 {
		c.MaxRings = DefaultMaxRings
	}
	if c.StaleAfter == 0 {
		c.StaleAfter = DefaultStaleAfter
	}
	if c.Report == nil {
		c.Report = func(Notice) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Directories = slices.Clone(c.Directories)
	for i, dir := range c.Directories {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return c, fmt.Errorf("directory %q: %w", dir, err)
		}
		c.Directories[i] = abs
	}
	return c, c.check()
}

func (c *Config) check() error {
	errs := []error{
		CheckDirectories(c.Directories),
		CheckPatterns("include", c.Include), CheckPatterns("exclude", c.Exclude),
	}
	if c.RunInterval < minDrainInterval {
		errs = append(errs, fmt.Errorf("run interval is %v: it must be %v or more", c.RunInterval, minDrainInterval))
	}
	if c.MaxRings < 0 {
		errs = append(errs, fmt.Errorf("max rings is %d: it must be 1 or more", c.MaxRings))
	}
	if c.StaleAfter < 0 {
		errs = append(errs, fmt.Errorf("stale after is %v: it must be positive", c.StaleAfter))
	}
	return errors.Join(errs...)
}

// CheckDirectories checks a list of directories: there must be one, and none
// twice, as its rings have one consumer.
func CheckDirectories(dirs []string) error {
	if len(dirs) == 0 {
		return errors.New("directories: at least one is needed, such as /run/nixl")
	}
	seen := make(map[string]bool)
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		switch {
		case dir == "":
			return errors.New("directories: one of them has no name: write a path, such as /run/nixl")
		case err != nil:
			return fmt.Errorf("directories: %s: %w", dir, err)
		case seen[abs]:
			return fmt.Errorf("directories: %s is named twice", dir)
		}
		seen[abs] = true
	}
	return nil
}

// CheckPatterns checks a list of doublestar patterns, named key in the error.
// One that no name of a ring can match is an error.
func CheckPatterns(key string, patterns []string) error {
	var errs []error
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			errs = append(errs, fmt.Errorf("%s: %q is not a valid pattern", key, p))
		} else if why := unmatchable(p); why != "" {
			errs = append(errs, fmt.Errorf("%s: %q %s: patterns are of names within a directory, such as *, decode-* or pod/**", key, p, why))
		}
	}
	return errors.Join(errs...)
}

// unmatchable says why nothing can match a pattern, or nothing. Names of rings
// are relative and clean.
func unmatchable(pattern string) string {
	parts := strings.Split(pattern, "/")
	switch {
	case pattern == "":
		return "matches nothing"
	case parts[0] == "":
		return "begins with a slash"
	case strings.Contains(pattern, "{"): // a slash within braces doesn't part it
		return ""
	case parts[len(parts)-1] == "":
		return "ends with a slash"
	case slices.Contains(parts, "."), slices.Contains(parts, ".."), slices.Contains(parts, ""):
		return "has a part that no path has once it is cleaned"
	default:
		return ""
	}
}
