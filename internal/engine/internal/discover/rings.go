// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"sync"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Rings is shared by all sources of one owner. It limits the number of agents, and what each
// holder uses. It records which files are open. A file must not be opened under two paths,
// because the second agent would count the same events.
type Rings struct {
	Budget Budget // of each holder; must not change after the first use

	mu       sync.Mutex
	limit    int
	ids      map[string]drain.Holder   // agents that the owner has
	claims   map[files.ID]claim        // files that are open
	accounts map[drain.Holder]*account // holders that use something
}

// idOf identifies the file of a ring.
func idOf(r *ringbuf.Reader) files.ID {
	dev, ino := r.ID()
	return files.ID{Dev: dev, Ino: ino}
}

// claim describes a file that is open.
type claim struct {
	path   string
	holder drain.Holder
	size   int64
}

// NewRings returns a Rings that allows limit agents, and the default budget for each holder.
func NewRings(limit int) *Rings {
	return &Rings{
		Budget: DefaultBudget, limit: limit,
		ids: make(map[string]drain.Holder), claims: make(map[files.ID]claim), accounts: make(map[drain.Holder]*account),
	}
}

// Add counts an agent of a holder unless it is already counted.
func (s *Rings) Add(id string, h drain.Holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, counted := s.ids[id]; !counted {
		s.ids[id] = h
		_ = s.useLocked(h, someRings, 1, true)
	}
}

// has reports whether an agent is counted.
func (s *Rings) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, counted := s.ids[id]
	return counted
}

// Remove is the reverse of Add.
func (s *Rings) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, counted := s.ids[id]; counted {
		delete(s.ids, id)
		s.freeLocked(h, someRings, 1)
	}
}

// pathOf returns the path under which a file is open, or "".
func (s *Rings) pathOf(id files.ID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[id].path
}

// Claim records that a file is open. It reports false if the file is already open.
func (s *Rings) Claim(id files.ID, path string) bool {
	return s.claim(id, claim{path: path}) == nil
}

// claim records that a file is open, and adds its size to what the holder uses.
func (s *Rings) claim(id files.ID, c claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims[id].path != "" {
		return errHeld
	}
	if err := s.useLocked(c.holder, someBytes, c.size, false); err != nil {
		return err
	}
	s.claims[id] = c
	return nil
}

// Release is the reverse of Claim.
func (s *Rings) Release(id files.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, open := s.claims[id]; open {
		delete(s.claims, id)
		s.freeLocked(c.holder, someBytes, c.size)
	}
}
