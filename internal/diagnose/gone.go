// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

// gone returns the jobs that have fewer running agents than before, although some still transfer. The
// number of running agents is compared with the lowest number some time ago, so a rollout that
// replaces each agent isn't reported. An agent that was idle before it exited doesn't count.
func (h *history) gone(i int) (list []Finding) {
	w := h.windows
	now, active := make(map[Job]int), make(map[Job]bool)
	exited := make(map[Job][]Identity)
	var jobs []Job
	for _, a := range h.agents {
		t := h.tracks[a]
		if t.up(i) == Yes {
			if now[a.Job]++; h.moved(t, i, w.Window) > 0 {
				active[a.Job] = true
			}
			continue
		}
		if t.exited(i) && h.moved(t, i, w.Before+w.Long) > 0 {
			if exited[a.Job] == nil {
				jobs = append(jobs, a.Job)
			}
			exited[a.Job] = append(exited[a.Job], a)
		}
	}
	last := h.index(i, w.Before)
	for _, j := range jobs {
		if !active[j] || h.at[i].Sub(h.at[last]) < w.Before {
			continue
		}
		if before := h.leastRunning(j, h.index(last, w.Ago), last); now[j] < before {
			list = append(list, exits(exited[j], now[j], before))
		}
	}
	return list
}

// exited reports whether the agent had exited when it was last seen. An agent that disappeared for
// another reason may still run.
func (t *track) exited(i int) bool {
	for ; i >= t.first; i-- {
		if t.states[i] != nil {
			return t.states[i].Up == No
		}
	}
	return false
}

// leastRunning returns the lowest number of running agents of a job in some samples.
func (h *history) leastRunning(j Job, from, to int) int {
	least := len(h.agents)
	for i := from; i <= to; i++ {
		n := 0
		for _, a := range h.agents {
			if a.Job == j && h.tracks[a].up(i) == Yes {
				n++
			}
		}
		least = min(least, n)
	}
	return least
}
