// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"sync"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Rings is what all sources of one owner share: how many agents there may be,
// and which files are open as rings. A file that is open already is not opened
// under another path: it would be another agent with the same events.
type Rings struct {
	mu    sync.Mutex
	limit int
	ids   map[string]bool           // of the agents that the owner has
	paths map[ringbuf.FileID]string // under which a file is open
}

// NewRings returns a Rings that allows a number of agents.
func NewRings(limit int) *Rings {
	return &Rings{limit: limit, ids: make(map[string]bool), paths: make(map[ringbuf.FileID]string)}
}

// Full reports whether there may be no more agents. Sources that look at the same
// time may exceed the limit by one each.
func (s *Rings) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids) >= s.limit
}

// Admit counts an agent, unless it is counted already.
func (s *Rings) Admit(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[id] = true
}

// Leave is the reverse of Admit.
func (s *Rings) Leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

// holder returns the path under which a file is open, or "".
func (s *Rings) holder(id ringbuf.FileID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths[id]
}

// Claim notes that a file is open, unless it is already.
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
