// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// history is the totals of all agents over time. The totals of a track never decrease: an agent
// that starts again at 0 continues where it was.
type history struct {
	windows Windows
	at      []time.Time // ascending
	agents  []*track    // sorted by identity
	jobs    [][]*track  // the same agents, by job
	links   [][]Link    // by time; nil where they aren't known
}

// track is an agent at each time.
type track struct {
	Identity           // the newest
	states   []*Agent  // nil where the agent is absent
	totals   []*totals // the last known ones where the agent is absent
	first    int       // the first state
}

// way is a direction, or both.
type way int

const (
	writes way = iota
	reads
	both
)

func (w way) noun() string { return [...]string{"write", "read", "transfer"}[w] }

// totals are sums. moved has one per way.
type totals struct {
	moved              [3]Moved
	failed, lost, post float64
	expected           float64 // failed, but maybe on purpose
	canceled           float64 // not among those that failed
	foreign, restarts  float64
	events, taken      float64 // taken is a lower bound of the number of events that a consumer has taken

	seconds float64 // of differences: the time between the frames, which may be less than was asked for
}

func newHistory(frames []*Frame, w Windows) *history {
	h := &history{windows: w}
	tracks := make(map[string]*track)
	for i, f := range frames {
		h.at, h.links = append(h.at, f.Time), append(h.links, f.Links)
		for n := range f.Agents {
			a := &f.Agents[n]
			t := tracks[a.ID]
			if t == nil {
				t = &track{states: make([]*Agent, len(frames)), totals: make([]*totals, len(frames)), first: i}
				tracks[a.ID], h.agents = t, append(h.agents, t)
			}
			t.states[i], t.Identity = a, a.Identity
		}
	}
	for _, t := range h.agents {
		t.accumulate()
	}
	slices.SortFunc(h.agents, func(a, b *track) int { return compareAgents(a.Identity, b.Identity) })
	h.jobs = grouped(h.agents, func(t *track) Job { return t.Job })
	return h
}

// accumulate adds the increases between successive states. The sums are kept, because only their differences matter, and
// most frames are those of the diagnosis before.
func (t *track) accumulate() {
	last := t.states[t.first]
	for i := t.first; i < len(t.states); i++ {
		if a := t.states[i]; a != nil {
			if a.sums == nil {
				a.sums = new(totals)
				if last.sums != nil {
					*a.sums = *last.sums
				}
				a.sums.add(last, a)
			}
			last = a
		}
		t.totals[i] = last.sums
	}
}

func (t *totals) add(from, to *Agent) {
	for d := range from.Moved {
		step := to.Moved[d].since(from.Moved[d])
		for _, w := range []way{way(d), both} {
			t.moved[w] = t.moved[w].plus(step)
		}
	}
	events := grown(from.Events, to.Events)
	t.events += events
	t.failed += grown(from.Failed(), to.Failed())
	t.expected += grown(from.Errors[NotFound], to.Errors[NotFound])
	t.canceled += grown(from.Errors[Canceled], to.Errors[Canceled])
	t.lost += grown(from.Dropped, to.Dropped)
	t.post += increase(from.Post, to.Post)
	if a, b := from.Ring, to.Ring; a != nil && b != nil {
		t.lost += grown(a.Saturations, b.Saturations) + grown(a.Torn, b.Torn)
		t.foreign += grown(a.Foreign, b.Foreign)
		t.restarts += grown(a.Restarts, b.Restarts)
		// Without a consumer, the ring contains the old events and the new ones. A consumer took what is missing.
		if a.Restarts == b.Restarts {
			t.taken += max(0, float64(a.Peak)+events-float64(b.Peak))
		}
	}
}

// increase returns how far a counter grew. A counter that is lower than before started again at 0.
func increase[T uint64 | float64](from, to T) T {
	if to < from {
		return to
	}
	return to - from
}

func grown(from, to uint64) float64 { return float64(increase(from, to)) }

// index returns the first frame that isn't older than a duration before frame i.
func (h *history) index(i int, ago time.Duration) int {
	begin := h.at[i].Add(-ago)
	return sort.Search(i, func(n int) bool { return !h.at[n].Before(begin) })
}

// during returns the increases of an agent's totals in the time before frame i. Before its first state, nothing is known.
func (h *history) during(t *track, i int, ago time.Duration) totals {
	to, from := max(t.first, i), max(t.first, h.index(i, ago))
	a, b := *t.totals[to], t.totals[from]
	a.seconds = h.at[to].Sub(h.at[from]).Seconds()
	for w := range a.moved {
		a.moved[w] = a.moved[w].minus(b.moved[w])
	}
	a.failed, a.lost, a.post, a.expected = a.failed-b.failed, a.lost-b.lost, a.post-b.post, a.expected-b.expected
	a.canceled -= b.canceled
	a.foreign, a.restarts, a.events, a.taken = a.foreign-b.foreign, a.restarts-b.restarts, a.events-b.events, a.taken-b.taken
	return a
}

// operations returns the number of operations that ended.
func (t *totals) operations() float64 { return t.failed + float64(t.moved[both].Transfers) }

// rate returns the number of transfers per second that an agent completed in the time before frame i.
func (h *history) rate(t *track, i int, ago time.Duration, w way) float64 {
	d := h.during(t, i, ago)
	return float64(d.moved[w].Transfers) / max(d.seconds, math.SmallestNonzeroFloat64)
}

// full reports whether an agent's states cover a duration before frame i.
func (h *history) full(t *track, i int, ago time.Duration) bool {
	return i > t.first && h.at[i].Sub(h.at[t.first]) >= ago
}

// pace is how fast an agent's transfers are: means of a window.
type pace struct {
	way   way
	size  float64 // bytes
	time  float64 // seconds
	speed float64 // bytes per second
	count float64 // transfers
	load  float64 // bytes per second, including idle time
	post  float64 // seconds per transfer, in both directions
	mixed bool    // the agent also moves data in the other direction
	share float64 // of writes among its transfers

	remembered bool // by the ring, from before the watch
}

func (p *pace) String() string {
	if p.count == 1 {
		return fmt.Sprintf("1 %s of %s, %s, %s", p.way.noun(), size(p.size), units.Duration(p.time), units.Throughput(p.speed))
	}
	return fmt.Sprintf("%s %ss of %s on average, %s each, %s", units.Count(uint64(p.count)), p.way.noun(), size(p.size), units.Duration(p.time), units.Throughput(p.speed))
}

func (m Moved) pace(w way) (pace, bool) {
	if m.Transfers < MinTransfers || m.Bytes == 0 || m.Seconds <= 0 {
		return pace{}, false
	}
	return m.mean(w), true
}

// mean returns the pace of any number of transfers.
func (m Moved) mean(w way) pace {
	bytes, n := float64(m.Bytes), float64(m.Transfers)
	return pace{way: w, size: bytes / n, time: m.Seconds / n, speed: bytes / m.Seconds, count: n}
}

// pace returns an agent's pace at frame i, if it completed enough transfers, and how long they took is known.
func (h *history) pace(t *track, i int, w way) (p pace, ok bool) {
	for _, window := range []time.Duration{h.windows.Window, h.windows.Longer} {
		if d := h.during(t, i, window); !ok && t.states[i] != nil {
			p, ok = d.moved[w].pace(w)
			p.mixed = d.moved[w].Transfers < d.moved[both].Transfers
			p.share = float64(d.moved[writes].Transfers) / max(1, float64(d.moved[both].Transfers))
			ok = ok && (!p.mixed || !t.states[i].Undivided)
			p.load, p.post = float64(d.moved[w].Bytes)/d.seconds, d.post/float64(d.moved[both].Transfers)
		}
	}
	return p, ok
}

// paces returns an agent's pace in each direction with enough transfers, or else that of both together.
func (h *history) paces(t *track, i int) (list []pace) {
	for _, w := range []way{writes, reads, both} {
		if p, ok := h.pace(t, i, w); ok && (w != both || len(list) == 0) {
			list = append(list, p)
		}
	}
	return list
}

// before returns the number of transfers from before the first frame that the agent's ring remembered.
func (t *track) before() uint64 { return t.states[t.first].Before }

// up returns whether the agent runs at frame i.
func (t *track) up(i int) Up {
	if t.states[i] == nil {
		return No
	}
	return t.states[i].Up
}

// identities returns who agents are.
func identities(agents []*track) (list []Identity) {
	for _, t := range agents {
		list = append(list, t.Identity)
	}
	return list
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
