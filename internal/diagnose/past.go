// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "math"

// slowdowns returns the agents that are far slower than they were, and the jobs with mostly such
// agents. The stragglers are known already.
//
// An agent is slower if its speed is below SlowerSpeed of the median of its past speeds, and its
// mean time is above LongerTime of the past's. Its past is the last day, one pace per Step. Other sizes have other
// speeds, and a shared link slows down under load, so an agent with another size or with more bytes per
// second than in the past isn't slower.
func (h *history) slowdowns(i int, stragglers []Finding) (list []Finding) {
	known := make(map[Identity]bool)
	for _, f := range stragglers {
		known[f.Agents[0]] = true
	}
	compared := make(map[Job]int)
	slower, remembered := make(map[Job][]Finding), make(map[string]bool)
	var jobs []Job
	for _, a := range h.agents {
		var worst *Finding
		judged := false
		for _, now := range h.paces(h.tracks[a], i) {
			past, ok := h.past(h.tracks[a], i, now.way)
			if judged = judged || ok; !ok || !now.slowerThan(past) {
				continue
			}
			if f := slowdown(a, now, past); worst == nil || f.Ratio < worst.Ratio {
				worst, remembered[a.ID] = &f, past.remembered
			}
		}
		if !judged {
			continue
		}
		if compared[a.Job]++; compared[a.Job] == 1 {
			jobs = append(jobs, a.Job)
		}
		if worst != nil {
			slower[a.Job] = append(slower[a.Job], *worst)
		}
	}
	for _, j := range jobs {
		if float64(len(slower[j])) > MostSlower*float64(compared[j]) {
			list = append(list, jobSlowdown(slower[j], compared[j], remembered[slower[j][0].Agents[0].ID]))
			continue
		}
		for _, f := range slower[j] {
			if !known[f.Agents[0]] && !remembered[f.Agents[0].ID] { // a ring remembers too little about a single agent
				list = append(list, f)
			}
		}
	}
	return list
}

func (p pace) slowerThan(past pace) bool {
	return p.speed < SlowerSpeed*past.speed && p.time > LongerTime*past.size/past.speed &&
		p.size < SimilarSize*past.size && p.size > past.size/SimilarSize && p.load <= MoreLoad*past.load
}

// past returns an agent's usual pace. Its speed is slightly below the median: if the load and with it the speed
// changed for good, the speed counts as usual before the load does. A watch that is too short for a past compares
// with what the ring remembered when it was opened, whose load is unknown.
func (h *history) past(t *track, i int, way way) (past pace, ok bool) {
	if i != len(h.at)-1 {
		return h.findPast(t, i, way)
	}
	if t.pasts[way] == nil {
		past, ok = h.findPast(t, i, way)
		if !ok {
			past = pace{}
		}
		t.pasts[way] = &past
	}
	return *t.pasts[way], t.pasts[way].speed > 0
}

func (h *history) findPast(t *track, i int, way way) (past pace, ok bool) {
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
		ok = ok && m.transfers >= MinRemembered
		past.load, past.remembered = math.Inf(1), true
		return past, ok
	}
	past = pace{way: way, size: median(sizes), speed: quantile(speeds, PastSpeed), load: median(loads)}
	past.time = past.size / past.speed
	return past, true
}

// remembered returns what the agent's ring remembered when it was opened.
func (t *track) remembered(w way) (sum moved) {
	for d, m := range t.states[t.first].Remembered {
		if w == both || w == way(d) {
			sum = moved{sum.bytes + float64(m.Bytes), sum.transfers + float64(m.Transfers), sum.seconds + m.Seconds}
		}
	}
	return sum
}
