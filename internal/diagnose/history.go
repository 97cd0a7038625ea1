// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"math"
	"slices"
	"sort"
	"time"
)

// history is the totals of all agents over time. The totals of a track never decrease: an agent
// that starts again at 0 continues where it was.
type history struct {
	windows Windows
	at      []time.Time // ascending
	tracks  map[Agent]*track
	agents  []Agent // sorted, so that results don't depend on the order of a map
}

// track is the totals of an agent at each time.
type track struct {
	readings []*Reading // nil where the agent is absent
	totals   []totals   // the last known ones where the agent is absent
	first    int        // the first reading
}

type totals struct {
	bytes, requests, failed, lost, foreign float64
	expected                               float64 // failed, but maybe on purpose
	busy, post                             float64 // seconds
}

func newHistory(samples []Sample, w Windows) *history {
	h := &history{windows: w, tracks: make(map[Agent]*track)}
	for i := range samples {
		h.at = append(h.at, samples[i].At)
		for n := range samples[i].Agents {
			r := &samples[i].Agents[n]
			t := h.tracks[r.Agent]
			if t == nil {
				t = &track{readings: make([]*Reading, len(samples)), totals: make([]totals, len(samples)), first: i}
				h.tracks[r.Agent] = t
				h.agents = append(h.agents, r.Agent)
			}
			t.readings[i] = r
		}
	}
	slices.SortFunc(h.agents, compareAgents)
	for _, t := range h.tracks {
		t.accumulate()
	}
	return h
}

// accumulate adds the increases between successive readings.
func (t *track) accumulate() {
	last, sum := t.readings[t.first], totals{}
	for i := t.first; i < len(t.readings); i++ {
		if r := t.readings[i]; r != nil {
			sum.add(last, r)
			last = r
		}
		t.totals[i] = sum
	}
}

func (s *totals) add(from, to *Reading) {
	s.bytes += grown(from.Bytes, to.Bytes)
	s.requests += grown(from.Requests, to.Requests)
	s.failed += grown(from.failed(), to.failed())
	s.lost += grown(from.Saturations, to.Saturations) + grown(from.Dropped, to.Dropped) + grown(from.Torn, to.Torn)
	s.expected += grown(from.Errors[NotFound], to.Errors[NotFound])
	s.foreign += grown(from.Foreign, to.Foreign)
	s.busy += grown(uint64(from.Busy), uint64(to.Busy)) / float64(time.Second)
	s.post += grown(uint64(from.Post), uint64(to.Post)) / float64(time.Second)
}

// grown returns the increase of a counter. A counter that is lower than before started again at 0.
func grown(from, to uint64) float64 {
	if to < from {
		return float64(to)
	}
	return float64(to - from)
}

// index returns the first sample that isn't older than a duration before sample i.
func (h *history) index(i int, ago time.Duration) int {
	begin := h.at[i].Add(-ago)
	return sort.Search(i, func(n int) bool { return !h.at[n].Before(begin) })
}

// during returns the increases of an agent's totals in the time before sample i.
func (h *history) during(t *track, i int, ago time.Duration) totals {
	a, b := t.totals[i], t.totals[h.index(i, ago)]
	return totals{
		a.bytes - b.bytes, a.requests - b.requests, a.failed - b.failed, a.lost - b.lost, a.foreign - b.foreign,
		a.expected - b.expected, a.busy - b.busy, a.post - b.post,
	}
}

// full reports whether an agent's readings cover a duration before sample i.
func (h *history) full(t *track, i int, ago time.Duration) bool {
	return i > t.first && h.at[i].Sub(h.at[t.first]) >= ago
}

// pace is how fast an agent's transfers are: means of the window.
type pace struct {
	size  float64 // bytes
	time  float64 // seconds
	speed float64 // bytes per second
	count float64 // transfers
	load  float64 // bytes per second, including idle time
}

// pace returns an agent's pace at sample i, if it completed enough transfers.
func (h *history) pace(t *track, i int) (pace, bool) {
	if i < 0 || t.readings[i] == nil {
		return pace{}, false
	}
	d := h.during(t, i, h.windows.Window)
	if d.requests < MinTransfers || d.bytes <= 0 || d.busy <= 0 {
		return pace{}, false
	}
	return pace{d.bytes / d.requests, d.busy / d.requests, d.bytes / d.busy, d.requests, d.bytes / h.windows.Window.Seconds()}, true
}

// moved returns the number of an agent's transfers in the time before sample i.
func (h *history) moved(t *track, i int, ago time.Duration) float64 {
	return h.during(t, i, ago).requests
}

// up returns whether the agent runs at sample i.
func (t *track) up(i int) Up {
	if t.readings[i] == nil {
		return No
	}
	return t.readings[i].Up
}

// median returns the median, or NaN. It sorts values.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns a quantile, interpolated as in PromQL, or NaN. It sorts values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	rank := q * float64(len(values)-1)
	low := int(rank)
	high := min(low+1, len(values)-1)
	if values[low] == values[high] {
		return values[low] // infinities can't be interpolated
	}
	return values[low] + (rank-float64(low))*(values[high]-values[low])
}

// difference returns the increases of a histogram's counts.
func (h Histogram) difference(from Histogram) Histogram {
	d := Histogram{Bounds: h.Bounds, Counts: slices.Clone(h.Counts)}
	if len(from.Counts) != len(h.Counts) {
		return d
	}
	for i, n := range from.Counts {
		d.Counts[i] = uint64(grown(n, h.Counts[i]))
	}
	return d
}

// quantile returns a quantile of a histogram, interpolated within a bucket as in PromQL, or NaN.
func (h Histogram) quantile(q float64) float64 {
	var sum float64
	for _, n := range h.Counts {
		sum += float64(n)
	}
	if sum == 0 || len(h.Bounds) == 0 {
		return math.NaN()
	}
	rank, below := q*sum, 0.0
	for i, bound := range h.Bounds {
		n := float64(h.Counts[i])
		if n > 0 && below+n >= rank {
			lower := 0.0
			if i > 0 {
				lower = h.Bounds[i-1]
			}
			return lower + (bound-lower)*max(0, rank-below)/n
		}
		below += n
	}
	return h.Bounds[len(h.Bounds)-1]
}
