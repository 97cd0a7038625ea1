// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "math"

// peer is an agent in a band.
type peer struct {
	agent Identity
	pace
}

// group identifies the agents of a job in a band. Reads are compared with reads, and writes with writes.
type group struct {
	Job
	way  way
	band int
}

// bands returns the agents with a speed, by job and band.
func (h *history) bands(i int) map[group][]peer {
	groups := make(map[group][]peer)
	for _, a := range h.agents {
		for _, p := range h.paces(h.tracks[a], i) {
			for _, n := range bandsOf(p.size) {
				g := group{a.Job, p.way, n}
				groups[g] = append(groups[g], peer{a, p})
			}
		}
	}
	return groups
}

// stragglers returns the agents that are far slower than their peers.
//
// An agent is a straggler if in one of its bands all of these hold:
//
//   - there are at least MinPeers agents;
//   - its speed is below StragglerSpeed of the median of the others, and below that median by more
//     than Spread standard deviations, which are estimated from the median absolute deviation;
//   - its mean time is above LongerTime of the median of the others;
//   - at most Company of the agents are as slow. If more are, they differ in kind.
//
// Below FarSlower of the median, two peers are enough, FarCompany may be as slow, and the deviation
// doesn't matter.
func (h *history) stragglers(i int) (list []Finding) {
	worst := make(map[Identity]Finding)
	for _, peers := range h.bands(i) {
		for _, f := range slowPeers(peers) {
			if old, ok := worst[f.Agents[0]]; !ok || f.Ratio < old.Ratio {
				if h.onlyTail(f.Agents[0], peers, i) {
					f.tail()
				}
				worst[f.Agents[0]] = f
			}
		}
	}
	for _, a := range h.agents {
		if f, ok := worst[a]; ok {
			list = append(list, f)
		}
	}
	return list
}

// onlyTail reports whether most transfers of a straggler are as fast as those of its peers, so that a few very slow ones
// make it slow on average. The histograms have no directions, so this isn't known of an agent that reads and writes.
func (h *history) onlyTail(a Identity, peers []peer, i int) bool {
	mine := math.NaN()
	var others []float64
	for _, p := range peers {
		switch middle := h.middle(p.agent, i); {
		case p.mixed || math.IsNaN(middle):
		case p.agent == a:
			mine = middle
		default:
			others = append(others, middle)
		}
	}
	return mine <= LongerTime*median(others) // never with NaN
}

// middle returns the median time of an agent's transfers, or NaN.
func (h *history) middle(a Identity, i int) float64 {
	t := h.tracks[a]
	from := t.states[h.index(i, h.windows.Window)]
	if from == nil || t.states[i] == nil {
		return math.NaN()
	}
	return t.states[i].Times.Since(from.Times).Quantile(0.5)
}

// slowPeers returns the stragglers of a band.
func slowPeers(peers []peer) []Finding {
	if len(peers) < FewPeers {
		return nil
	}
	// A straggler has a lower speed, a longer time and a larger deviation than the median. Another value
	// at the other end moves the median as far as leaving out the straggler does.
	speeds, times, deviations := []float64{math.Inf(1)}, []float64{0}, []float64{0}
	for _, p := range peers {
		speeds, times = append(speeds, p.speed), append(times, p.time)
	}
	speed, time := median(speeds), median(times)
	for _, p := range peers {
		deviations = append(deviations, math.Abs(p.speed-speed))
	}
	limit := speed - Spread*PerDeviation*median(deviations)
	var slow, far []Finding
	apparent := 0 // slow, and unlike their peers
	for _, p := range peers {
		if p.speed >= StragglerSpeed*speed || p.time <= LongerTime*time {
			continue
		}
		apparent++
		f := straggler(p, speed, time, len(peers)-1)
		if p.speed < limit {
			slow = append(slow, f)
		}
		if p.speed < FarSlower*speed {
			far = append(far, f)
		}
	}
	if len(peers) >= MinPeers && float64(apparent) <= Company*float64(len(peers)) {
		return slow
	}
	if float64(len(far)) <= FarCompany*float64(len(peers)) {
		return far
	}
	return nil
}
