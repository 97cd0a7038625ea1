// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Configured finds the configured directories, which may come and go.
type Configured struct {
	Dirs   []string
	PodUID string // of the agents in all directories; empty without one
}

// Finder returns a Finder that finds the directories.
func (c Configured) Finder(by IdentifyBy) Finder { return configured{c, by} }

type configured struct {
	Configured

	by IdentifyBy
}

// Name implements [Finder].
func (configured) Name() string { return "directories" }

// Find implements [Finder].
func (c configured) Find(time.Time) (map[string]Location, error) {
	found := make(map[string]Location)
	for _, dir := range c.Dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		found[abs] = place{dir: abs, pod: c.PodUID, by: c.by}
	}
	return found, nil
}

// place is a configured directory.
type place struct {
	dir, pod string
	by       IdentifyBy
}

// Holder implements [Location].
func (p place) Holder() drain.Holder { return drain.Holder{Place: p.dir, Shared: true} }

// Path implements [Location].
func (p place) Path() string { return p.dir }

// OpenDir implements [Location].
func (p place) OpenDir(name string) (*files.Dir, error) { return files.OpenDir(p.dir, name) }

// HasRings implements [Location].
func (place) HasRings() bool { return true }

// Identify implements [Location].
func (p place) Identify(a drain.Agent, _ *ringbuf.Reader, _ time.Time) (drain.Agent, Mapped) {
	return p.IdentifyStore(a, 0), MaybeMapped
}

// IdentifyStore implements [Location].
func (p place) IdentifyStore(a drain.Agent, _ int64) drain.Agent {
	if p.pod == "" {
		return a
	}
	return p.by.identify(a, origin{pod: p.pod})
}
