// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

// health describes the agent's ring.
type health struct {
	capacity    int
	peak        int // highest fill since the last Rest
	saturations uint64
	restarts    uint64
	lossy       uint64 // restarts that may have discarded unread events
	foreign     uint64
	missed      uint64
	torn        uint64
}

// stored are the figures that outlive the ring's reader.
func (h *health) stored() [5]*uint64 {
	return [...]*uint64{&h.saturations, &h.restarts, &h.lossy, &h.foreign, &h.torn}
}

// Found records how many events a drain found in the ring.
func (a *Agent) Found(fill, capacity int) {
	if a.health.capacity != capacity {
		a.health.capacity, a.health.peak = capacity, 0
	}
	a.health.peak = max(a.health.peak, fill)
}

// Saturated records that a drain found the ring full of new events.
func (a *Agent) Saturated() { a.health.saturations++ }

// Restarted records that the agent has restarted: its memory was released, and
// the rest of a transfer's group won't come. mayHaveLost reports whether the
// restart may have discarded events that nobody had read.
func (a *Agent) Restarted(mayHaveLost bool) {
	a.health.restarts++
	if mayHaveLost {
		a.health.lossy++
	}
	a.Opened(true)
	a.groups.restart()
}

// ForeignRead records that another consumer has taken events from the ring.
func (a *Agent) ForeignRead() {
	a.health.foreign++
	a.skipped()
}

// Missed records that events were gone before they could be read: overwritten
// under an observer, for example, or in a ring that can't be read any more.
func (a *Agent) Missed() {
	a.health.missed++
	a.skipped()
}

// skipped forgets what a gap in the events makes uncertain.
func (a *Agent) skipped() {
	a.memory.known = false
	a.groups.lose()
}

// Rest starts a new interval for [Totals.Utilization].
func (a *Agent) Rest() { a.health.peak = 0 }

// Capacity is the number of the ring's slots, 0 before the first drain.
func (t *Totals) Capacity() int { return t.health.capacity }

// Utilization is the highest fill of the ring that a drain found in the
// present interval, which the last [Agent.Snapshot] started; 1 is full.
func (t *Totals) Utilization() float64 {
	if t.health.capacity < 2 {
		return 0
	}
	return float64(t.health.peak) / float64(t.health.capacity-1)
}

// Saturations is the number of drains that found the ring full.
func (t *Totals) Saturations() uint64 { return t.health.saturations }

// Restarts is the number of times the agent restarted.
func (t *Totals) Restarts() uint64 { return t.health.restarts }

// LossyRestarts is the number of restarts that may have discarded unread events.
func (t *Totals) LossyRestarts() uint64 { return t.health.lossy }

// ForeignReads is the number of times another consumer took events.
func (t *Totals) ForeignReads() uint64 { return t.health.foreign }

// TornGroups is the number of transfers of which events are missing, at least.
func (t *Totals) TornGroups() uint64 { return t.health.torn }

// Misses is the number of times events were missed. How many is unknown.
func (t *Totals) Misses() uint64 { return t.health.missed }
