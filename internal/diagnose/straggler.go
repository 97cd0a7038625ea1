// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// slowness is an agent's pace, and the pace that it is compared with.
type slowness struct {
	now, usual pace
	source     string // of the usual pace
}

func (s slowness) ratio() float64 { return s.now.speed / s.usual.speed }

// slow reports whether a pace is slow compared with another: the speed is below a share, and transfers take longer.
func (p pace) slow(usual pace, share float64) bool {
	return p.speed < share*usual.speed && p.time > LongerTime*usual.time && p.mixedLike(usual)
}

// mixedLike reports whether a pace of both directions has about as many writes as another. If it hasn't, it may be slower only because
// one direction is.
func (p pace) mixedLike(usual pace) bool {
	return p.way != both || math.Abs(p.share-usual.share) <= SimilarShare
}

// slower returns a finding about an agent that is slow in one direction or in both.
func slower(k Kind, a Identity, list []slowness, than, short string) Finding {
	does, worst := "moves", math.Inf(1)
	var speeds, evidence []string
	for _, s := range list {
		instead := fmt.Sprintf("%s instead of %s", units.Throughput(s.now.speed), units.Throughput(s.usual.speed))
		if noun := s.now.way.noun(); len(list) > 1 {
			instead = noun + "s at " + instead
		} else if s.now.mixed {
			does = noun + "s"
		}
		speeds, evidence = append(speeds, instead), append(evidence, s.now.String(),
			fmt.Sprintf("%s: %s each, %s", s.source, units.Duration(s.usual.time), units.Throughput(s.usual.speed)))
		worst = min(worst, s.ratio())
	}
	f := newFinding(k, []Identity{a}, fmt.Sprintf(short, percent(worst)),
		fmt.Sprintf("%s %s data at %s of %s: %s.", a, does, percent(worst), than, strings.Join(speeds, ", ")), evidence...)
	f.Ratio = worst
	return f
}

// peer is an agent in a band: the agents of a job with transfers of a similar size in the same direction.
type peer struct {
	*track
	pace
	band int
}

// bands returns the agents with a speed, by job, direction and band.
func (h *history) bands(i int) [][]peer {
	var all []peer
	for _, t := range h.agents {
		for _, p := range h.paces(t, i) {
			for _, n := range bandsOf(p.size) {
				all = append(all, peer{t, p, n})
			}
		}
	}
	type group struct {
		Job
		way  way
		band int
	}
	return grouped(all, func(p peer) group { return group{p.Job, p.way, p.band} })
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
	worst := make(map[*track]map[way]slowness)
	for _, peers := range h.bands(i) {
		usual, slow := slowPeers(peers)
		for _, p := range slow {
			s := slowness{p.pace, usual, fmt.Sprintf("median of %d peers with similar sizes", len(peers)-1)}
			if worst[p.track] == nil {
				worst[p.track] = make(map[way]slowness)
			}
			if old, ok := worst[p.track][p.way]; !ok || s.ratio() < old.ratio() {
				worst[p.track][p.way] = s
			}
		}
	}
	for _, t := range h.agents {
		var ways []slowness
		for _, w := range []way{writes, reads, both} {
			if s, ok := worst[t][w]; ok {
				ways = append(ways, s)
			}
		}
		if len(ways) > 0 {
			list = append(list, slower(Straggler, t.Identity, ways, "the speed of its peers", "straggler: %s of peers"))
		}
	}
	return list
}

// slowPeers returns the median pace of a band, and the stragglers.
func slowPeers(peers []peer) (usual pace, slow []peer) {
	if len(peers) < FewPeers {
		return usual, nil
	}
	// A straggler has a lower speed, a longer time and a larger deviation than the median. Another value
	// at the other end moves the median as far as leaving out the straggler does.
	speeds, times, deviations, shares := []float64{math.Inf(1)}, []float64{0}, []float64{0}, []float64(nil)
	for _, p := range peers {
		speeds, times, shares = append(speeds, p.speed), append(times, p.time), append(shares, p.share)
	}
	usual.speed, usual.time, usual.share = median(speeds), median(times), median(shares)
	for _, p := range peers {
		deviations = append(deviations, math.Abs(p.speed-usual.speed))
		if p.slow(usual, StragglerSpeed) {
			slow = append(slow, p)
		}
	}
	far := slices.DeleteFunc(slices.Clone(slow), func(p peer) bool { return p.speed >= FarSlower*usual.speed })
	switch n := float64(len(peers)); {
	case len(peers) >= MinPeers && float64(len(slow)) <= Company*n:
		limit := usual.speed - Spread*PerDeviation*median(deviations)
		return usual, slices.DeleteFunc(slow, func(p peer) bool { return p.speed >= limit })
	case float64(len(far)) <= FarCompany*n:
		return usual, far
	}
	return usual, nil
}
