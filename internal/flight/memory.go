// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// memory is the newest events of all agents. An agent has a limit of its own. If all agents
// together reach theirs, the container that holds most loses its oldest events, so that no
// container can push out the events of others.
type memory struct {
	agents   map[string]*agent // by ID
	limit    int               // of used
	perAgent int               // limit of an agent's chunks
	used     int               // size of all chunks, also of those that are only kept for a reader
	groups   map[group]int     // size of the chunks of the agents of each group
	sweptAt  int64             // when agents were last swept
}

// group is what shares a limit: the agents of a container, or one agent that isn't in one.
type group struct {
	holder engine.Holder
	id     string
}

func groupOf(a *engine.Agent) group {
	if a.Holder.Isolated() {
		return group{holder: a.Holder}
	}
	return group{id: a.ID}
}

// agent is the history of an agent.
type agent struct {
	engine.Agent
	group    group
	open     bool
	layout   ringbuf.Layout
	capacity int

	chunks []*chunk // oldest first
	size   int      // of the chunks
	cut    int64    // time of the newest entry before the chunks that was discarded too early
	gap    bool     // entries were discarded since the last one
}

func newMemory(l Limits) memory {
	return memory{agents: make(map[string]*agent), limit: int(l.MemoryBytes), perAgent: int(l.AgentBytes), groups: make(map[group]int)}
}

// of returns the history of an agent.
func (m *memory) of(a *engine.Agent) *agent {
	one := m.agents[a.ID]
	if one == nil {
		one = &agent{Agent: *a, group: groupOf(a)}
		m.agents[a.ID] = one
	}
	return one
}

// why explains missing events.
const (
	whyCut = "earlier events were discarded, because the flight recorder's memory is limited"
	whyGap = "events were discarded, because the flight recorder's memory was full while it wrote a recording"
)

// chunk returns the chunk to which the next entry is appended, with room for size bytes, or nil.
func (m *memory) chunk(a *agent, at int64, size int) *chunk {
	if a.gap {
		size += 2*maxHead + 2*binary.MaxVarintLen64 + len(whyGap)
	}
	var c *chunk
	if n := len(a.chunks); n > 0 && a.chunks[n-1].room() >= size {
		c = a.chunks[n-1]
	} else if c = m.grow(a, at, size); c == nil {
		a.gap = true
		return nil
	}
	if a.gap {
		a.gap = false
		if a.open { // this may be what was discarded
			c.addOpened(at, a.layout, a.capacity)
		}
		c.addState(at, missed, whyGap)
	}
	return c
}

// grow adds a chunk to an agent, or returns nil.
func (m *memory) grow(a *agent, at int64, room int) *chunk {
	size := min(1<<bits.Len(uint(max(a.size, minChunk, room)-1)), maxChunk)
	var spare *chunk
	for len(a.chunks) > 0 && (a.chunks[0].last < at-keep.Microseconds() || a.size+size > m.perAgent) {
		c := m.pop(a, at)
		if spare == nil && !c.reading && cap(c.data) == size {
			spare = c
		}
	}
	if spare == nil {
		if !m.makeRoom(size, at) {
			return nil
		}
		spare = &chunk{data: make([]byte, 0, size)}
	}
	*spare = chunk{layout: a.layout, capacity: a.capacity, open: a.open, data: spare.data[:0]}
	a.chunks = append(a.chunks, spare)
	m.resize(a, size)
	m.used += size
	return spare
}

// makeRoom discards events of whoever holds most, until there is room. It reports false if these
// are being read.
func (m *memory) makeRoom(size int, at int64) bool {
	for m.used+size > m.limit {
		most := m.largest()
		if most == nil || most.chunks[0].reading {
			return false
		}
		m.pop(most, at)
	}
	return true
}

// largest returns the largest agent of the largest group.
func (m *memory) largest() (most *agent) {
	for _, a := range m.agents {
		switch {
		case len(a.chunks) == 0:
		case most == nil, m.groups[a.group] > m.groups[most.group], m.groups[a.group] == m.groups[most.group] && a.size > most.size:
			most = a
		}
	}
	return most
}

// pop removes the oldest chunk of an agent. Its memory is free unless it is being read.
func (m *memory) pop(a *agent, at int64) *chunk {
	c := a.chunks[0]
	a.chunks = slices.Delete(a.chunks, 0, 1)
	m.resize(a, -cap(c.data))
	if !c.reading {
		m.used -= cap(c.data)
	}
	if c.last >= at-keep.Microseconds() {
		a.cut = c.last
	}
	return c
}

func (m *memory) resize(a *agent, by int) {
	a.size += by
	if m.groups[a.group] += by; m.groups[a.group] == 0 {
		delete(m.groups, a.group)
	}
}

// sweep frees the memory of old events, and forgets agents that have exited.
func (m *memory) sweep(at int64) {
	if at-m.sweptAt < keep.Microseconds()/4 {
		return
	}
	m.sweptAt = at
	for id, a := range m.agents {
		for len(a.chunks) > 0 && a.chunks[0].last < at-keep.Microseconds() {
			m.pop(a, at)
		}
		if len(a.chunks) == 0 && !a.open {
			delete(m.agents, id)
		}
	}
}

// taken is a chunk that is being read, as it was when it was taken.
type taken struct {
	*chunk
	data []byte
}

// history is the entries of an agent that are being read.
type history struct {
	agent  agent // without chunks
	chunks []taken
}

// take returns the entries of all agents. They don't change until release.
func (m *memory) take(at int64) (all []history) {
	m.sweptAt = 0
	m.sweep(at)
	for _, a := range m.agents {
		h := history{agent: *a}
		h.agent.chunks = nil
		for _, c := range a.chunks {
			c.reading = true
			h.chunks = append(h.chunks, taken{c, c.data})
		}
		all = append(all, h)
	}
	return all
}

// release frees what take has returned.
func (m *memory) release(all []history) {
	for _, h := range all {
		a := m.agents[h.agent.ID]
		for _, c := range h.chunks {
			c.reading = false
			if a == nil || !slices.Contains(a.chunks, c.chunk) {
				m.used -= cap(c.data)
			}
		}
	}
}
