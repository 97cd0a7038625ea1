// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"math"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// slowdowns returns the agents that are far slower than they were, and the jobs with mostly such
// agents. The stragglers are known already.
//
// An agent is slower if its speed is below SlowerSpeed of the median of its past speeds, and its
// mean time is above LongerTime of the past's. Its past is the last day, one pace per Step. Other sizes have other
// speeds, and a shared link slows down under load, so an agent with another size or with more bytes per
// second than in the past isn't slower.
func (h *history) slowdowns(i int, stragglers []Finding) (list []Finding) {
	known := make(map[string]bool)
	for _, f := range stragglers {
		known[f.Agents[0].ID] = true
	}
	for _, job := range h.jobs {
		var found []Finding
		judged, remembered := 0, make(map[string]bool)
		for _, t := range job {
			compared := 0
			var ways []slowness
			for _, now := range h.paces(t, i) {
				past, ok := h.past(t, i, now.way)
				compared += boolean(ok)
				if ok && now.slow(past, SlowerSpeed) && now.like(past) {
					ways, remembered[t.ID] = append(ways, slowness{now, past, past.source()}), past.remembered
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

// like reports whether a pace can be compared with a past one: the size is similar, and the load isn't higher.
func (p pace) like(past pace) bool {
	return p.size < SimilarSize*past.size && p.size > past.size/SimilarSize && p.load <= MoreLoad*past.load
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
	if f.Ratio = ratio; remembered {
		f.Severity = Warning // the load is unknown
	}
	return f
}

// past returns an agent's usual pace. Its speed is slightly below the median: if the load and with it the speed
// changed for good, the speed counts as usual before the load does. A watch that is too short for a past compares
// with what the ring remembered when it was opened, whose load is unknown.
func (h *history) past(t *track, i int, way way) (past pace, ok bool) {
	w := h.windows
	var speeds, sizes, loads []float64
	for ago := w.Gap; ago <= w.Gap+w.Past; ago += w.Step {
		if h.at[i].Sub(h.at[t.first]) < ago {
			break
		}
		if p, ok := h.pace(t, h.index(i, ago), way); ok {
			speeds, sizes, loads = append(speeds, p.speed), append(sizes, p.size), append(loads, p.load)
		}
	}
	if len(speeds) < w.Steps {
		m := t.remembered(way)
		past, ok = m.pace(way)
		past.load, past.remembered = math.Inf(1), true
		return past, ok
	}
	past = pace{way: way, size: median(sizes), speed: quantile(speeds, PastSpeed), load: median(loads)}
	past.time = past.size / past.speed
	return past, true
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
	return "median of the past"
}
