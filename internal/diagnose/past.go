// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// slowdowns returns the agents that are far slower than they were, and the jobs with mostly such
// agents. The stragglers are known already.
//
// An agent is slower if its speed is below SlowerSpeed of its usual one, and its mean time is above LongerTime of the
// usual one. Other sizes have other speeds, so only paces with a similar size are compared. A shared link slows down under
// load, but not more than the load has grown. Of an agent with few transfers, one that takes ten times as long as usual is
// evidence by itself.
func (h *history) slowdowns(i int, stragglers []Finding) (list []Finding) {
	known := make(map[string]bool)
	for _, f := range stragglers {
		known[f.Agents[0].ID] = true
	}
	for _, job := range h.jobs {
		var found []Finding
		judged, remembered := 0, make(map[string]bool)
		for _, t := range job {
			if h.restarts(t, i, WarmUp) > 0 {
				continue // it sets up connections, and its caches are cold
			}
			compared := 0
			var ways []slowness
			for _, now := range h.paces(t, i) {
				past, ok := h.past(t, i, now)
				compared += boolean(ok)
				if ok && now.slow(past, SlowerSpeed) {
					ways, remembered[t.ID] = append(ways, slowness{now, past, past.source()}), past.remembered
				}
			}
			if now, past, ok := h.few(t, i); ok {
				compared++
				if now.time > FarLonger*past.time {
					ways = append(ways, slowness{now, past, past.source()})
				}
			}
			judged += boolean(compared > 0)
			if len(ways) > 0 {
				found = append(found, slower(Slower, t.Identity, ways, "its own past speed", "%s of its past speed"))
			}
		}
		if float64(len(found)) > MostSlower*float64(judged) {
			list = append(list, jobSlower(found, judged, remembered[found[0].Agents[0].ID]))
			continue
		}
		for _, f := range found {
			if id := f.Agents[0].ID; !known[id] && !remembered[id] { // a ring remembers too little about a single agent
				list = append(list, f)
			}
		}
	}
	return list
}

// few returns the pace of an agent that completes too few transfers for others, and that of before.
func (h *history) few(t *track, i int) (now, past pace, ok bool) {
	const longer, few = 5, 10
	window := longer * h.windows.Longer
	if t.states[i] == nil || !h.full(t, i, 2*window) {
		return now, past, false
	}
	n, before := h.during(t, i, window).moved[both], h.during(t, h.index(i, window), h.windows.Recent).moved[both]
	if n.Transfers == 0 || n.Transfers >= MinTransfers || before.Transfers < few {
		return now, past, false
	}
	now, past = n.mean(both), before.mean(both)
	return now, past, now.like(past)
}

// like reports whether a pace has about the size of another.
func (p pace) like(past pace) bool {
	return p.size < SimilarSize*past.size && p.size > past.size/SimilarSize
}

func jobSlower(slower []Finding, judged int, remembered bool) Finding {
	ratios := make([]float64, len(slower))
	var agents []Identity
	for i, f := range slower {
		ratios[i], agents = f.Ratio, append(agents, f.Agents[0])
	}
	ratio := median(ratios)
	f := newFinding(JobSlower, agents, percent(ratio)+" of its past speed, like its peers",
		fmt.Sprintf("%d of %d agents of %s move data at %s of their past speed.", len(slower), judged, agents[0].Job, percent(ratio)), slower[0].Evidence...)
	if len(slower) == 1 { // no other agent could be compared
		f.Short, f.What = percent(ratio)+" of its past speed", fmt.Sprintf("%s, the only agent of %s that could be compared, moves data at %s of its past speed.", agents[0], agents[0].Job, percent(ratio))
		f.Not = kinds[Slower.urgency()].not
	}
	if f.Ratio = ratio; remembered {
		f.Severity = Warning // the load is unknown
	}
	return f
}

// past returns the usual pace of an agent at the size of a pace now. A watch that is too short for a past compares with what the ring
// remembered when it was opened, whose load is unknown.
func (h *history) past(t *track, i int, now pace) (past pace, ok bool) {
	w := h.windows
	var speeds, sizes []float64
	known := 0
	for ago := w.Gap; ago <= w.Gap+w.Past && h.at[i].Sub(h.at[t.first]) >= ago; ago += w.Step {
		if p, ok := h.pace(t, h.index(i, ago), now.way); ok {
			if known++; now.like(p) && now.mixedLike(p) {
				speeds, sizes = append(speeds, p.speed/max(1, now.load/(MoreLoad*p.load))), append(sizes, p.size)
			}
		}
	}
	if known < w.Steps {
		past, ok = t.remembered(now.way).pace(now.way)
		past.remembered, past.share = true, now.share
		return past, ok && now.like(past)
	}
	past = pace{way: now.way, size: median(sizes), speed: quantile(speeds, w.Usual), share: now.share}
	past.time = past.size / past.speed
	return past, len(speeds) >= w.Steps
}

// remembered returns what the agent's ring remembered when it was opened.
func (t *track) remembered(w way) (sum Moved) {
	for d, m := range t.states[t.first].Remembered {
		if w == both || w == way(d) {
			sum = sum.plus(m)
		}
	}
	return sum
}

// source says which past a pace is of.
func (p *pace) source() string {
	if p.remembered {
		return "mean of " + units.Count(uint64(p.count)) + " earlier transfers that its ring remembered"
	}
	return "expected from before, at this size and load"
}
