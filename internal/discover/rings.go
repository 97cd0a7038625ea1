// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"sync"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Rings is shared by all sources of one owner. It limits the number of agents, and it
// records which files are open. A file must not be opened under two paths, because
// the second agent would count the same events.
type Rings struct {
	mu    sync.Mutex
	limit int
	ids   map[string]bool           // agents that the owner has
	paths map[ringbuf.FileID]string // path under which a file is open
}

// NewRings returns a Rings that allows limit agents.
func NewRings(limit int) *Rings {
	return &Rings{limit: limit, ids: make(map[string]bool), paths: make(map[ringbuf.FileID]string)}
}

// Full reports whether the limit is reached. Sources that call it concurrently may
// each exceed the limit by one.
func (s *Rings) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids) >= s.limit
}

// Add counts an agent unless it is already counted.
func (s *Rings) Add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[id] = true
}

// Remove is the reverse of Add.
func (s *Rings) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

// pathOf returns the path under which a file is open, or "".
func (s *Rings) pathOf(id ringbuf.FileID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths[id]
}

// Claim records that a file is open. It reports false if the file is already open.
func (s *Rings) Claim(id ringbuf.FileID, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paths[id] != "" {
		return false
	}
	s.paths[id] = path
	return true
}

// Release is the reverse of Claim.
func (s *Rings) Release(id ringbuf.FileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.paths, id)
}
