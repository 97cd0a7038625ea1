package top

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// patterns are those that agents' names are to match.
func (c *SourceConfig) patterns() []string {
	if !c.Recursive {
		return c.Include
	}
	const below = "**/" // any folder, the directory itself too
	if len(c.Include) == 0 {
		return []string{below + "*"}
	}
	var list []string
	for _, p := range c.Include {
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
	// A folder that can't be read is as good as an empty one.
	_ = filepath.WalkDir(s.cfg.Directory, func(path string, e fs.DirEntry, err error) error {
		switch {
		case e == nil: // the directory itself
			return err
		case e.IsDir() && path != s.cfg.Directory && !s.cfg.deep():
			return fs.SkipDir
		case e.IsDir():
			return nil
		case files >= most:
			return fs.SkipAll
		}
		files++
		if _, err := ringbuf.Peek(path); err == nil {
			s.left++
		}
		return nil
	})
	return s.left
}
