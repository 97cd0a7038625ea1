// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

const (
	// minInterval is the shortest time between two drains of a ring.
	minInterval = time.Millisecond
	// unknownInterval is the time between two drains of a ring whose agent's
	// run interval isn't known yet, unless the configured one asks for less.
	// Its first events may be more than fit into a ring in a run interval. It is
	// longer where there are many such rings: unknownPerRing for each, which
	// bounds the cost to about a thousandth of a core.
	unknownInterval = 5 * time.Millisecond
	unknownPerRing  = 50 * time.Microsecond
	// streak is the number of successive drains, minInterval apart, that must
	// find events before the agent is taken to flush that often. A flush that
	// the scheduler interrupts spans two or three.
	streak = 8
	// patience is the number of successive bursts that must be at least twice as far
	// apart as learned before the interval is corrected. A flush that the scheduler
	// interrupts looks like two bursts close to each other. Without a correction, its
	// ring would be drained far too often from then on.
	patience = 4
)

// pace decides when a ring is drained next, from what earlier drains found.
//
// Agents flush in bursts, one per run interval. Only the agent knows that
// interval, and it may be a hundredth of the configured one. So the first
// events of a ring are watched closely, for two configured run intervals, to
// learn how far apart its bursts are. The same happens again when a drain
// finds more than the bursts learned so far explain.
type pace struct {
	configured time.Duration // the run interval of the configuration
	interval   time.Duration // between two bursts, as observed; 0 if unknown
	burst      int           // events in a burst; decays slowly

	learnUntil time.Time     // zero unless learning
	shortest   time.Duration // between the starts of two bursts while learning; 0 if none was seen
	row        int           // drains in a row that found events
	slower     int           // successive bursts that were at least twice as far apart as learned
	least      time.Duration // the shortest time between those
	lastDrain  time.Time
	lastBurst  time.Time // when a drain last found events, after one that found none
}

func newPace(configured time.Duration) pace { return pace{configured: configured} }

// drained records that a drain found a number of new events in a ring with a
// number of slots.
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

// explains reports whether the bursts learned so far explain a number of
// events that came within elapsed, or whether the ring has room for many times
// as many.
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

// correct raises the interval if it turns out to be longer than learned. A burst has
// just begun.
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

// idle records that a drain found nothing, as most do. It reports false if next
// must be asked again, because the agent's bursts are being learned.
func (p *pace) idle(now time.Time) bool {
	p.lastDrain, p.row = now, 0
	return p.learnUntil.IsZero()
}

// unknownWait returns the time between two drains of a ring whose agent's interval
// isn't known, given the number of such rings.
func unknownWait(configured time.Duration, rings int) time.Duration {
	wait := max(unknownInterval, time.Duration(rings)*unknownPerRing)
	return min(wait, max(configured/2, minInterval))
}

// next returns the time until the next drain of a ring with a number of slots;
// unknown is for a ring whose agent's interval isn't known. At most a quarter of
// the ring fills until then, as far as its agent is known, unless a single burst
// is larger than that.
func (p *pace) next(capacity int, unknown time.Duration) time.Duration {
	longest := max(p.configured/2, minInterval)
	switch {
	case !p.learnUntil.IsZero():
		return minInterval
	case p.interval == 0:
		return unknown
	}
	fits := time.Duration(float64(p.interval) * float64(capacity) / float64(4*max(p.burst, 1)))
	return min(max(fits, minInterval), longest)
}
