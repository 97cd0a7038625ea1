// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"slices"
	"time"
)

// stalls returns the agents that hang, and the jobs whose agents all hang.
//
// NIXL reports completed transfers only, so an agent that hangs reports nothing. It is stalled if it
// runs, completed no transfer for the time Silent, and transferred regularly until then. Regularly
// means that it completed at least MinTransfers in each such time of the last hour, and that its rate
// didn't fall below half of the median before it stopped: then it ran out of work.
//
// If another agent of the job still transfers, the agent is stalled. It is critical unless its peers have
// taken over its load, as if a load balancer had moved it. If no agent transfers, the job is stalled for an
// hour, which is normal if it has no work. Then it counts as idle. Events that another consumer took
// aren't missed transfers.
func (h *history) stalls(i int) (list []Finding) {
	w := h.windows
	stalled := make(map[Job][]Finding)
	active := make(map[Job]int)
	begun, lost := make(map[Job]int), make(map[Job]float64) // the first sample of a stall; transfers of stalled agents before
	var jobs []Job
	for _, a := range h.agents {
		t := h.tracks[a]
		if t.up(i) == No || !h.full(t, i, w.Silent) {
			continue
		}
		if h.during(t, i, w.Long).foreign > 0 {
			continue
		}
		if h.moved(t, i, w.Silent) > 0 {
			active[a.Job]++
			continue
		}
		if last := t.lastMove(i); h.regular(t, last) {
			if stalled[a.Job] == nil {
				jobs = append(jobs, a.Job)
			}
			lost[a.Job] += h.moved(t, last, w.Silent)
			if n, ok := begun[a.Job]; !ok || last < n {
				begun[a.Job] = last
			}
			stalled[a.Job] = append(stalled[a.Job], stall(a, h.at[last], h.at[i], h.moved(t, last, w.Silent)/w.Silent.Seconds()))
		}
	}
	for _, j := range jobs {
		if active[j] > 0 {
			moved := h.jobMoved(j, i) >= h.jobMoved(j, begun[j])-lost[j]/2
			for _, f := range stalled[j] {
				f.Evidence = append(f.Evidence, othersActive(active[j]))
				if moved {
					f.Severity = Warning
					f.Evidence = append(f.Evidence, loadMoved())
				}
				list = append(list, f)
			}
			continue
		}
		if f := jobStall(stalled[j]); w.Silent >= JobSilent && h.at[i].Sub(f.Since) < w.Recent {
			list = append(list, f)
		}
	}
	return list
}

// jobMoved returns the number of a job's transfers in the time Silent before a sample.
func (h *history) jobMoved(j Job, i int) (n float64) {
	for _, a := range h.agents {
		if t := h.tracks[a]; a.Job == j && i > t.first {
			n += h.moved(t, i, h.windows.Silent)
		}
	}
	return n
}

// lastMove returns the last sample up to i in which the agent completed a transfer, or -1.
func (t *track) lastMove(i int) int {
	for ; i > t.first; i-- {
		if t.totals[i].requests > t.totals[i-1].requests {
			return i
		}
	}
	return -1
}

// regular reports whether an agent transferred regularly until a sample.
func (h *history) regular(t *track, last int) bool {
	w := h.windows
	if last < 0 || !h.full(t, last, w.Regular) {
		return false
	}
	var counts []float64
	step := max(w.Silent/3, time.Nanosecond)
	for ago := time.Duration(0); ago <= w.Recent; ago += step {
		n := h.index(last, ago)
		if !h.full(t, n, w.Silent) {
			break
		}
		counts = append(counts, h.moved(t, n, w.Silent))
	}
	if len(counts) == 0 { // a short watch
		counts = append(counts, h.moved(t, last, w.Silent))
	}
	now := counts[0]
	return now >= StillBusy*median(counts) && slices.Min(counts) >= MinTransfers
}

// idlers returns the agents without transfers while all their peers have many. They may be spare.
// Only a short watch needs this: later, regular transfers tell an agent that hangs from a spare one.
func (h *history) idlers(i int, known []Finding) (list []Finding) {
	quiet, busy := make(map[Job][]Agent), make(map[Job]int)
	for _, a := range h.agents {
		t := h.tracks[a]
		if t.up(i) != Yes || i == t.first {
			continue
		}
		switch n := h.moved(t, i, h.windows.Window); {
		case n == 0:
			quiet[a.Job] = append(quiet[a.Job], a)
		case n >= MinTransfers:
			busy[a.Job]++
		}
	}
	stalled := make(map[Agent]bool)
	for _, f := range known {
		for _, a := range f.Agents {
			stalled[a] = true
		}
	}
	for _, a := range h.agents {
		if q := quiet[a.Job]; len(q) > 0 && busy[a.Job] >= MinPeers-1 && len(q) <= busy[a.Job]/(MinPeers-1) && slices.Contains(q, a) && !stalled[a] {
			list = append(list, idle(a, busy[a.Job], h.windows.Window))
		}
	}
	return list
}
