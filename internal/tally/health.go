package tally

// health is how the agent's ring fares.
type health struct {
	capacity    int
	peak        int // highest fill since the last Rest
	saturations uint64
	restarts    uint64
	foreign     uint64
	missed      uint64
}

// Found notes how many events a drain found in the ring.
func (a *Agent) Found(fill, capacity int) {
	if a.health.capacity != capacity {
		a.health.capacity, a.health.peak = capacity, 0
	}
	a.health.peak = max(a.health.peak, fill)
}

// Saturated notes that a drain found the ring full of new events.
func (a *Agent) Saturated() { a.health.saturations++ }

// Restarted notes that the agent has started anew: its memory is gone, and so
// is the rest of a transfer's group.
func (a *Agent) Restarted() {
	a.health.restarts++
	a.registeredBefore = a.Registered().Sum
	a.deregisteredBefore = a.Deregistered().Sum
	a.groups.restart()
}

// ForeignRead notes that somebody else has taken events from the ring.
func (a *Agent) ForeignRead() {
	a.health.foreign++
	a.groups.lose()
}

// Missed notes that events went by unseen, as they may for an observer.
func (a *Agent) Missed() {
	a.health.missed++
	a.groups.lose()
}

// Capacity is the number of the ring's slots, 0 before the first drain.
func (a *Agent) Capacity() int { return a.health.capacity }

// Utilization is the highest fill of the ring that a drain found since the
// last [Agent.Rest]; 1 is full.
func (a *Agent) Utilization() float64 {
	if a.health.capacity < 2 {
		return 0
	}
	return float64(a.health.peak) / float64(a.health.capacity-1)
}

// Rest begins a new interval for [Agent.Utilization].
func (a *Agent) Rest() { a.health.peak = 0 }

// Saturations is the number of drains that found the ring full.
func (a *Agent) Saturations() uint64 { return a.health.saturations }

// Restarts is how often the agent started anew.
func (a *Agent) Restarts() uint64 { return a.health.restarts }

// ForeignReads is how often somebody else was found to have taken events.
func (a *Agent) ForeignReads() uint64 { return a.health.foreign }

// TornGroups is the number of transfers of which events were missing, at least.
func (a *Agent) TornGroups() uint64 { return a.groups.torn }

// Misses is how often events went by unseen. How many, nobody knows.
func (a *Agent) Misses() uint64 { return a.health.missed }
