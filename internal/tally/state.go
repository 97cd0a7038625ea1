// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Reasons why totals can't be restored.
var (
	// ErrState reports a state that no agent can have.
	ErrState = errors.New("invalid totals")
	// ErrShape reports totals with another histogram configuration.
	ErrShape = errors.New("the totals have another histogram configuration")
)

// State is the stored form of an agent's totals, in JSON. It doesn't include the fill of the
// ring, which describes the current state. Its slices may be those of the agent, so it is valid
// until the agent changes.
type State struct {
	Shape       uint64 // hash of the histogram configuration
	Counters    [ringbuf.Types]counterState
	Histograms  [6]histogramState
	OtherErrors Sum `json:",omitzero"`
	Memory      memoryState
	Overflow    [reserved]counterState
	Series      []seriesState `json:",omitempty"`
	Group       groupState
	Health      [4]uint64
}

type counterState struct {
	Events uint64 `json:",omitempty"`
	Sum    Sum    `json:",omitzero"`
	Last   uint64 `json:",omitempty"`
}

type seriesState struct {
	Category ringbuf.Category
	Name     string
	counterState
}

type histogramState struct {
	Min, Max, Last uint64
	Sum            Sum
	Counts         []uint64 `json:",omitempty"`
	Exponential    *Buckets `json:",omitempty"`
}

type memoryState struct {
	Known                                bool
	RegisteredBefore, DeregisteredBefore Sum
}

// groupState is the open group of an agent; see groups.
type groupState struct {
	Synced            bool
	Seen              places
	Dir               int8
	Written           [2]places
	Post, Took, Bytes uint64
}

// State returns the stored form of the totals.
func (a *Agent) State() *State {
	g, m := &a.groups, &a.memory
	s := &State{
		Shape: a.shape.hash(), OtherErrors: a.otherErrors,
		Memory: memoryState{Known: m.known, RegisteredBefore: m.registeredBefore, DeregisteredBefore: m.deregisteredBefore},
		Group: groupState{
			Synced: g.synced, Seen: g.seen, Dir: g.dir, Written: g.written,
			Post: g.post, Took: g.took, Bytes: g.bytes,
		},
	}
	for t, c := range a.counters {
		s.Counters[t] = counterState{c.Events, c.Sum, c.last}
	}
	for i, h := range a.list() {
		s.Histograms[i] = histogramState{Min: h.min, Max: h.max, Last: h.last, Sum: h.sum, Counts: h.counts()}
		if h.exp != nil {
			buckets := h.exp.buckets()
			s.Histograms[i].Exponential = &buckets
		}
	}
	for i := range a.series {
		one := &a.series[i]
		count := counterState{one.Events, one.Sum, one.last}
		if i < reserved {
			s.Overflow[i] = count
		} else {
			s.Series = append(s.Series, seriesState{one.number, one.Name, count})
		}
	}
	for i, n := range a.health.stored() {
		s.Health[i] = *n
	}
	return s
}

// Restore returns an agent with the totals of s, which may be any. The error wraps [ErrState]
// or [ErrShape].
func (s *Shape) Restore(from *State) (*Agent, error) {
	if from.Shape != s.hash() {
		return nil, ErrShape
	}
	a := NewAgent(s)
	for t, c := range from.Counters {
		a.counters[t] = Total{c.Events, c.Sum, c.Last}
	}
	for i, h := range a.list() {
		if err := h.restore(&from.Histograms[i]); err != nil {
			return nil, err
		}
	}
	a.otherErrors = from.OtherErrors
	for i, n := range a.health.stored() {
		*n = from.Health[i]
	}
	return a, errors.Join(a.restoreMemory(&from.Memory), a.restoreSeries(from), a.groups.restore(&from.Group))
}

func (h *Histogram) restore(from *histogramState) error {
	if len(from.Counts) != len(h.counts()) {
		return fmt.Errorf("%w: %d buckets, not %d", ErrState, len(from.Counts), len(h.counts()))
	}
	h.min, h.max, h.last, h.sum = from.Min, from.Max, from.Last, from.Sum
	copy(h.counts(), from.Counts)
	if b := from.Exponential; h.exp != nil && b != nil {
		n := len(b.Counts)
		if b.Scale < minScale || b.Scale > maxScale || n > h.exp.maxSize || n > 0 && (b.middle(0) == 0 || math.IsInf(b.middle(n-1), 0)) {
			return fmt.Errorf("%w: %d buckets from %d on at scale %d", ErrState, n, b.Offset, b.Scale)
		}
		h.exp.restore(*b)
	}
	h.setQuick()
	return nil
}

func (a *Agent) restoreMemory(from *memoryState) error {
	if a.Registered().Sum.less(from.RegisteredBefore) < 0 || a.Deregistered().Sum.less(from.DeregisteredBefore) < 0 {
		return fmt.Errorf("%w: the memory at the agent's last start exceeds the total", ErrState)
	}
	a.memory = memory{from.Known, from.RegisteredBefore, from.DeregisteredBefore}
	a.checkMemory()
	return nil
}

// restoreSeries restores series up to the limit, which may have been higher when they were
// stored. It adds the rest to the overflow series, so no event is lost.
func (a *Agent) restoreSeries(from *State) error {
	for i := range from.Overflow {
		a.series[i].add(from.Overflow[i])
	}
	seen := make(map[seriesKey]bool)
	for _, one := range from.Series {
		key := seriesKey{one.Category, one.Name}
		if seen[key] || key.category != knownCategory(key.category) || !utf8.ValidString(key.name) {
			return fmt.Errorf("%w: name %q", ErrState, key.name)
		}
		seen[key] = true
		i := overflow(key.category)
		if !a.full() {
			i = a.restored(key)
		}
		a.series[i].add(one.counterState)
	}
	return nil
}

func (s *Series) add(c counterState) {
	s.Events += c.Events
	s.Sum.plus(c.Sum)
	s.last = c.Last
}

func (g *groups) restore(from *groupState) error {
	if from.Seen >= atRequests || from.Dir < 0 || from.Dir > 1 || max(from.Written[0], from.Written[1]) > allPlaces {
		return fmt.Errorf("%w: a transfer with the events %b and %b", ErrState, from.Seen, from.Written)
	}
	*g = groups{synced: from.Synced, seen: from.Seen, dir: from.Dir, written: from.Written, post: from.Post, took: from.Took, bytes: from.Bytes}
	return nil
}
