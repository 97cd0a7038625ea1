// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import "time"

// maxPoints bounds the number of points that a track keeps per window, for short times between
// two samples.
const maxPoints = 16

// point is the part of a reading that rates are computed from.
type point struct {
	at     time.Time
	totals Totals
	taken  uint64 // number of events that a consumer must have taken so far
}

// track is one agent over time.
type track struct {
	window time.Duration
	limit  int // maximum length of the history

	since     point   // when the agent was first seen
	points    []point // oldest first; the last one is the newest reading
	reading   Reading
	lastEvent time.Time // zero if there was none since the first reading
	history   History
}

func newTrack(at time.Time, r *Reading, window time.Duration, limit int) *track {
	first := point{at: at, totals: r.Totals}
	return &track{window: window, limit: limit, since: first, points: []point{first}, reading: *r}
}

// add adds a reading.
func (t *track) add(at time.Time, r *Reading) {
	last := t.points[len(t.points)-1]
	elapsed := at.Sub(last.at)
	if elapsed <= 0 {
		t.reading = *r
		return
	}
	d := r.Totals.since(&last.totals)
	if d.Events > 0 {
		t.lastEvent = at
	}
	now := point{at: at, totals: r.Totals, taken: last.taken + taken(&t.reading, r, d.Events, d.Restarts)}
	t.history.add(t.limit, elapsed, &d, r.fill())
	t.reading = *r
	t.push(now)
}

// push appends a point and removes the points before the window, except for the last of
// them. If points are closer together than window/maxPoints, the new one replaces the
// previous one, because only the oldest and the newest are needed.
func (t *track) push(p point) {
	n := len(t.points)
	if n > 1 && p.at.Sub(t.points[n-2].at) < t.window/maxPoints {
		t.points[n-1] = p
	} else {
		t.points = append(t.points, p)
	}
	begin := p.at.Add(-t.window)
	for len(t.points) > 2 && !t.points[1].at.After(begin) {
		t.points = t.points[1:]
	}
}

// taken returns a lower bound of the number of events that a consumer took between two readings.
// Without a consumer, the ring contains the old events and the new ones. A consumer took
// what is missing.
func taken(old, r *Reading, events, restarts uint64) uint64 {
	peak := uint64(max(r.Peak, 0))
	if had := uint64(max(old.Peak, 0)) + events; restarts == 0 && had > peak {
		return had - peak
	}
	return 0
}

// fill returns the peak of the ring as a share of its capacity.
func (r *Reading) fill() float64 {
	if r.Capacity < 2 {
		return 0
	}
	return min(1, float64(r.Peak)/float64(r.Capacity-1))
}

// row returns the agent at its newest reading, without its problems.
func (t *track) row() Row {
	first, last := &t.points[0], &t.points[len(t.points)-1]
	w := last.totals.since(&first.totals)
	row := Row{
		Reading: t.reading,
		Fill:    t.reading.fill(),
		Window:  w,
		Since:   last.totals.since(&t.since.totals),
		P50:     Quantile(w.Duration, 0.5), P99: Quantile(w.Duration, 0.99),
		PostP50: Quantile(w.Post, 0.5), PostP99: Quantile(w.Post, 0.99),
		ThroughputP10: throughputQuantile(w.Throughput, 0.1), ThroughputP50: throughputQuantile(w.Throughput, 0.5),
		Speed: w.mean(),
		Age:   last.at.Sub(t.since.at), NoEvents: t.lastEvent.IsZero(),
	}
	if !row.NoEvents {
		row.Age = last.at.Sub(t.lastEvent)
	}
	if elapsed := last.at.Sub(first.at).Seconds(); elapsed > 0 {
		row.Out, row.In = float64(w.Out)/elapsed, float64(w.In)/elapsed
		row.Transfers, row.Errors = float64(w.Transfers)/elapsed, float64(w.Errors)/elapsed
		row.events = float64(w.Events) / elapsed
	}
	row.Reader = t.reader(last.taken - first.taken)
	return row
}

// reader returns who takes events from the ring, given how many were taken in the window.
func (t *track) reader(taken uint64) Reader {
	early := t.points[len(t.points)-1].at.Sub(t.since.at) < t.window/2 // a consumer may still be starting
	switch {
	case t.reading.Store, t.reading.Recorded: // nobody takes events from a store
		return Unknown
	case early && t.reading.Lock.PID > 0:
		return Locked
	case early && taken == 0:
		return Unknown
	case t.reading.Lock.PID > 0 && taken == 0 && t.reading.Peak > 0:
		return Stalled
	case t.reading.Lock.PID > 0:
		return Locked
	case taken > 0 && t.reading.Lock.Unknown:
		return Hidden
	case taken > 0:
		return Foreign
	case t.reading.Peak > 0:
		return Nobody
	default:
		return Unknown
	}
}
