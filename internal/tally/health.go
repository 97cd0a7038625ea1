// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

// health describes the agent's ring.
type health struct {
	capacity    int
	peak        int // highest fill since the last Snapshot
	saturations uint64
	restarts    uint64
	foreign     uint64
	missed      uint64
	torn        uint64
}

// stored returns the counters that are part of a checkpoint.
func (h *health) stored() [4]*uint64 {
	return [...]*uint64{&h.saturations, &h.restarts, &h.foreign, &h.torn}
}

// Found records how many events a drain found in the ring.
func (a *Agent) Found(fill, capacity int) {
	if a.health.capacity != capacity {
		a.health.capacity, a.health.peak = capacity, 0
	}
	a.health.peak = max(a.health.peak, fill)
}

// Saturated records that a drain found the ring full.
func (a *Agent) Saturated() { a.health.saturations++ }

// Restarted records that the agent has restarted: its memory was released, and an
// incomplete group stays incomplete.
func (a *Agent) Restarted() {
	a.health.restarts++
	a.Opened(true)
	a.groups.restart()
}

// ForeignRead records that another process has consumed events of the ring.
func (a *Agent) ForeignRead() {
	a.health.foreign++
	a.skipped()
}

// Missed records that events were lost before they could be read, for example because
// the agent overwrote them before an observer read them, or because the ring has become
// unreadable.
func (a *Agent) Missed() {
	a.health.missed++
	a.skipped()
}

// skipped resets the state that depends on having seen all events.
func (a *Agent) skipped() {
	a.memory.Known = false
	a.groups.skip()
}

// Capacity returns the number of the ring's slots, or 0 before the first drain.
func (t *Totals) Capacity() int { return t.health.capacity }

// Utilization returns the highest fill of the ring that a drain has found since the
// last [Agent.Snapshot]; 1 means full.
func (t *Totals) Utilization() float64 {
	if t.health.capacity < 2 {
		return 0
	}
	return float64(t.health.peak) / float64(t.health.capacity-1)
}

// Saturations returns the number of drains that found the ring full.
func (t *Totals) Saturations() uint64 { return t.health.saturations }

// Restarts returns the number of times that the agent restarted.
func (t *Totals) Restarts() uint64 { return t.health.restarts }

// ForeignReads returns the number of times that another process consumed events.
func (t *Totals) ForeignReads() uint64 { return t.health.foreign }

// TornGroups returns the minimum number of transfers with missing events.
func (t *Totals) TornGroups() uint64 { return t.health.torn }

// Misses returns the number of times that events were missed. The number of events is
// unknown.
func (t *Totals) Misses() uint64 { return t.health.missed }
