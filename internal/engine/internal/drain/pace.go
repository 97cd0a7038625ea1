// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

const (
	// minInterval is the shortest time between two drains of a ring.
	minInterval = time.Millisecond
	// unknownInterval is the time between two drains of a ring whose agent's run
	// interval isn't known yet, unless the configured interval requires less. It is
	// short because the first bursts may be more frequent than configured. With many
	// such rings, it is unknownPerRing for each ring, which limits the cost to about
	// a thousandth of a core. It grows with the time without events, up to silentInterval:
	// most agents either write soon after they start, or never.
	unknownInterval = 5 * time.Millisecond
	unknownPerRing  = 50 * time.Microsecond
	silentShare     = 200 // the wait is the ring's age divided by this, within the limits
	silentInterval  = 50 * time.Millisecond
	// streak is the number of successive drains, minInterval apart, that must find
	// events before minInterval counts as the agent's interval. A flush that the
	// scheduler interrupts spans two or three drains.
	streak = 8
	// patience is the number of successive bursts that must be at least twice as far
	// apart as learned before the interval is corrected. A flush that the scheduler
	// interrupts looks like two close bursts. Without a correction, the ring would
	// then always be drained far too often.
	patience = 4
)

// pace schedules the drains of a ring based on the results of earlier drains.
//
// Agents flush in bursts, one per run interval. Only the agent knows this interval, and
// it may be a hundredth of the configured interval. So after the first events, the ring
// is drained often for two configured run intervals, to learn the time between bursts.
// This repeats when a drain finds more events than the learned bursts explain.
type pace struct {
	configured time.Duration // the run interval of the configuration
	opened     time.Time     // when the ring was opened
	interval   time.Duration // learned time between two bursts; 0 if unknown
	burst      int           // events in a burst; decays slowly

	learnUntil time.Time     // zero unless learning
	shortest   time.Duration // while learning: shortest time between two bursts; 0 if unknown
	row        int           // successive drains that found events
	slower     int           // successive bursts at least twice as far apart as learned
	least      time.Duration // shortest time between these bursts
	lastDrain  time.Time
	lastBurst  time.Time // start of the last burst
}

func newPace(configured time.Duration, opened time.Time) pace {
	return pace{configured: configured, opened: opened}
}

// drained records the number of new events that a drain found.
func (p *pace) drained(now time.Time, events, capacity int) {
	elapsed := now.Sub(p.lastDrain)
	p.lastDrain = now
	switch {
	case p.learning(now):
		p.learn(now, events)
	case events == 0:
	case !p.explains(events, capacity, elapsed):
		p.startLearning(now, events)
	case p.row == 0:
		p.correct(now)
	}
	if events == 0 {
		p.row = 0
		return
	}
	p.row++
	p.burst = max(events, p.burst-p.burst/8)
}

// explains reports whether the learned bursts explain a number of events within elapsed,
// or whether the events fill only a small part of the ring.
func (p *pace) explains(events, capacity int, elapsed time.Duration) bool {
	if p.interval == 0 {
		return false
	}
	bursts := int(elapsed/p.interval) + 2
	return events <= capacity/8 || events <= bursts*p.burst
}

func (p *pace) learning(now time.Time) bool {
	if p.learnUntil.IsZero() || now.Before(p.learnUntil) {
		return !p.learnUntil.IsZero()
	}
	p.learnUntil = time.Time{}
	p.interval = p.configured
	if p.shortest > 0 {
		p.interval = min(p.shortest, p.configured)
	}
	return false
}

func (p *pace) startLearning(now time.Time, events int) {
	p.learnUntil = now.Add(2 * p.configured)
	p.shortest, p.row, p.lastBurst, p.slower = 0, 0, now, 0
	p.burst = events
}

// correct increases the interval if it is longer than learned. It is called at the start
// of a burst.
func (p *pace) correct(now time.Time) {
	gap := now.Sub(p.lastBurst)
	p.lastBurst = now
	if gap < 2*p.interval || p.interval >= p.configured {
		p.slower = 0
		return
	}
	if p.slower == 0 || gap < p.least {
		p.least = gap
	}
	if p.slower++; p.slower == patience {
		p.interval, p.slower = min(p.least, p.configured), 0
	}
}

func (p *pace) learn(now time.Time, events int) {
	if events == 0 {
		return
	}
	if p.row == 0 { // a burst begins
		if gap := now.Sub(p.lastBurst); p.shortest == 0 || gap < p.shortest {
			p.shortest = gap
		}
		p.lastBurst = now
	}
	if p.row+1 >= streak {
		p.shortest = minInterval
	}
}

// idle records that a drain found no events, which is the most frequent case. It reports
// whether the result of next is still valid, which it isn't while learning or before the
// first events.
func (p *pace) idle(now time.Time) bool {
	p.lastDrain, p.row = now, 0
	return p.learnUntil.IsZero() && p.interval > 0
}

// unknownWait returns the time between two drains of a new ring whose agent's interval is
// unknown, given the number of such rings.
func unknownWait(configured time.Duration, rings int) time.Duration {
	wait := max(unknownInterval, time.Duration(rings)*unknownPerRing)
	return min(wait, max(configured/2, minInterval))
}

// next returns the time until the next drain, which is at least unknown while the agent's
// interval is unknown. According to the learned bursts, at most a quarter of the ring fills until
// then, unless a single burst is larger.
func (p *pace) next(capacity int, unknown time.Duration) time.Duration {
	longest := max(p.configured/2, minInterval)
	switch {
	case !p.learnUntil.IsZero():
		return minInterval
	case p.interval == 0:
		silent := min(p.lastDrain.Sub(p.opened)/silentShare, silentInterval)
		return min(max(unknown, silent), longest)
	}
	fits := time.Duration(float64(p.interval) * float64(capacity) / float64(4*max(p.burst, 1)))
	return min(max(fits, minInterval), longest)
}
