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
	// errState reports a state that no agent can have.
	errState = errors.New("invalid totals")
	// errShape reports totals with another histogram configuration.
	errShape = errors.New("the totals have another histogram configuration")
)

// State is the stored form of an agent's totals. It doesn't include the fill of the
// ring, which describes the current state. Its slices may be those of the agent, so it is valid
// until the agent changes.
type State struct {
	Shape       uint64 // hash of the histogram configuration
	Counters    [ringbuf.Types]Total
	Histograms  [6]histogramState
	OtherErrors Sum
	Memory      memory
	Series      []Series // the first two are the overflow series
	Group       groups   // the open group
	Health      [4]uint64
}

type histogramState struct {
	Min, Max, Last uint64
	Sum            Sum
	Counts         []uint64
	Exponential    *Buckets
}

// State returns the stored form of the totals.
func (a *Agent) State() *State {
	s := &State{Shape: a.shape.hash(), Counters: a.counters, OtherErrors: a.otherErrors, Memory: a.memory, Series: a.series, Group: a.groups}
	for i, h := range a.list() {
		s.Histograms[i] = histogramState{Min: h.min, Max: h.max, Last: h.last, Sum: h.sum, Counts: h.counts()}
		if h.exp != nil {
			buckets := h.exp.buckets()
			s.Histograms[i].Exponential = &buckets
		}
	}
	for i, n := range a.health.stored() {
		s.Health[i] = *n
	}
	return s
}

// Restore returns an agent with the totals of from, which may be any.
func (s *Shape) Restore(from *State) (*Agent, error) {
	if from.Shape != s.hash() {
		return nil, errShape
	}
	a := NewAgent(s)
	a.counters, a.otherErrors, a.groups = from.Counters, from.OtherErrors, from.Group
	for i, h := range a.list() {
		if err := h.restore(&from.Histograms[i]); err != nil {
			return nil, err
		}
	}
	for i, n := range a.health.stored() {
		*n = from.Health[i]
	}
	return a, errors.Join(a.restoreMemory(from.Memory), a.restoreSeries(from.Series), a.groups.check())
}

func (h *Histogram) restore(from *histogramState) error {
	if len(from.Counts) != len(h.counts()) {
		return fmt.Errorf("%w: %d buckets, not %d", errState, len(from.Counts), len(h.counts()))
	}
	h.min, h.max, h.last, h.sum = from.Min, from.Max, from.Last, from.Sum
	copy(h.counts(), from.Counts)
	if b := from.Exponential; h.exp != nil && b != nil {
		n := len(b.Counts)
		if b.Scale < minScale || b.Scale > maxScale || n > h.exp.maxSize || n > 0 && (b.middle(0) == 0 || math.IsInf(b.middle(n-1), 0)) {
			return fmt.Errorf("%w: %d buckets from %d on at scale %d", errState, n, b.Offset, b.Scale)
		}
		h.exp.restore(*b)
	}
	h.setQuick()
	return nil
}

func (a *Agent) restoreMemory(from memory) error {
	if a.Registered().Sum.less(from.RegisteredBefore) < 0 || a.Deregistered().Sum.less(from.DeregisteredBefore) < 0 {
		return fmt.Errorf("%w: the memory at the agent's last start exceeds the total", errState)
	}
	a.memory = from
	a.checkMemory()
	return nil
}

// restoreSeries restores series up to the limit, which may have been higher when they were
// stored. It adds the rest to the overflow series, so no event is lost.
func (a *Agent) restoreSeries(from []Series) error {
	seen := make(map[seriesKey]bool)
	for i, one := range from {
		key := seriesKey{one.Number, one.Name}
		switch to := overflow(key.category); {
		case i < reserved:
			a.series[i].add(one.Total)
		case seen[key] || key.category != knownCategory(key.category) || !utf8.ValidString(key.name):
			return fmt.Errorf("%w: name %q", errState, key.name)
		default:
			seen[key] = true
			if _, known := a.byKey[key]; known || !a.full() {
				to = a.restored(key)
			}
			a.series[to].add(one.Total)
		}
	}
	return nil
}

// Join adds the totals of another agent, which has counted a later run with the same shape.
func (a *Agent) Join(later *Agent) {
	a.memory = memory{later.memory.Known, a.Registered().Sum, a.Deregistered().Sum}
	a.memory.RegisteredBefore.plus(later.memory.RegisteredBefore)
	a.memory.DeregisteredBefore.plus(later.memory.DeregisteredBefore)
	for i := range a.counters {
		a.counters[i].add(later.counters[i])
	}
	for i, h := range a.list() {
		h.join(later.list()[i])
	}
	for i, n := range a.health.stored() {
		*n += *later.health.stored()[i]
	}
	a.health.missed += later.health.missed
	a.Found(later.health.peak, later.health.capacity)
	a.otherErrors.plus(later.otherErrors)
	_ = a.restoreSeries(later.series) // they are valid
	a.groups = later.groups
}

func (h *Histogram) join(later *Histogram) {
	if later.Count() == 0 {
		return
	}
	h.last = later.last
	h.min, h.max = min(h.min, later.min), max(h.max, later.max)
	h.sum.plus(later.sum)
	if h.exp != nil {
		h.exp.MergeFrom(&later.exp.Float64)
		return
	}
	for i, n := range later.counts() {
		h.counts()[i] += n
	}
	h.setQuick()
}

// check returns an error for a group that no agent can have.
func (g *groups) check() error {
	if g.Seen >= atRequests || g.Dir < 0 || g.Dir > 1 || max(g.Written[0], g.Written[1]) > allPlaces {
		return fmt.Errorf("%w: a transfer with the events %b and %b", errState, g.Seen, g.Written)
	}
	return nil
}
