// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

// slowdowns returns the agents that are far slower than they were, and the jobs with mostly such
// agents. The stragglers are known already.
//
// An agent is slower if its speed is below SlowerSpeed of the median of its past speeds, and its
// mean time is above LongerTime of the median of its past times. Its past is the last day, one speed
// per Step.
func (h *history) slowdowns(i int, stragglers []Finding) (list []Finding) {
	known := make(map[Agent]bool)
	for _, f := range stragglers {
		known[f.Agents[0]] = true
	}
	compared := make(map[Job]int)
	slower := make(map[Job][]Finding)
	var jobs []Job
	for _, a := range h.agents {
		now, ok := h.pace(h.tracks[a], i)
		if !ok {
			continue
		}
		speed, time, ok := h.past(h.tracks[a], i)
		if !ok {
			continue
		}
		if compared[a.Job]++; compared[a.Job] == 1 {
			jobs = append(jobs, a.Job)
		}
		if now.speed < SlowerSpeed*speed && now.time > LongerTime*time {
			slower[a.Job] = append(slower[a.Job], slowdown(a, now, speed, time))
		}
	}
	for _, j := range jobs {
		if float64(len(slower[j])) > MostSlower*float64(compared[j]) {
			list = append(list, jobSlowdown(slower[j], compared[j]))
			continue
		}
		for _, f := range slower[j] {
			if !known[f.Agents[0]] {
				list = append(list, f)
			}
		}
	}
	return list
}

// past returns the medians of an agent's past speeds and mean times.
func (h *history) past(t *track, i int) (speed, time float64, ok bool) {
	w := h.windows
	var speeds, times []float64
	for ago := w.Gap; ago <= w.Gap+w.Past; ago += w.Step {
		if h.at[i].Sub(h.at[t.first]) < ago {
			break
		}
		if p, ok := h.pace(t, h.index(i, ago)); ok {
			speeds, times = append(speeds, p.speed), append(times, p.time)
		}
	}
	if len(speeds) < w.Steps {
		return 0, 0, false
	}
	return median(speeds), median(times), true
}
