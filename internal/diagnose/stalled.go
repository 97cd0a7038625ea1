// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"slices"
	"strings"
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
//
// Reads may hang while writes don't, or the other way round. That is a warning if peers still do both.
func (h *history) stalls(i int) (list []Finding) {
	list = h.stallsOf(i, both)
	return append(list, append(h.stallsOf(i, writes), h.stallsOf(i, reads)...)...)
}

func (h *history) stallsOf(i int, way way) (list []Finding) {
	w := h.windows
	stalled := make(map[Job][]Finding)
	active := make(map[Job]int)
	begun, lost := make(map[Job]int), make(map[Job]float64) // the first frame of a stall; transfers of stalled agents before
	var jobs []Job
	for _, a := range h.agents {
		t := h.tracks[a]
		if t.up(i) == No || !h.full(t, i, w.Silent) || h.during(t, i, w.Long).foreign > 0 {
			continue
		}
		m := h.during(t, i, w.Silent).moved
		if m[way].transfers > 0 {
			active[a.Job]++
			continue
		}
		if way != both && m[both].transfers == 0 {
			continue // not only one direction
		}
		if last := t.lastMove(i, way); h.regular(t, last, way) {
			if stalled[a.Job] == nil {
				jobs = append(jobs, a.Job)
			}
			n := h.during(t, last, w.Silent).moved[way].transfers
			lost[a.Job] += n
			if b, ok := begun[a.Job]; !ok || last < b {
				begun[a.Job] = last
			}
			f := stall(a, way, h.at[last], h.at[i], n/w.Silent.Seconds())
			if t.up(i) == Unknown {
				f.What, f.Not = strings.Replace(f.What, "runs, but ", "", 1), unknownUp[1:]
			}
			stalled[a.Job] = append(stalled[a.Job], f)
		}
	}
	for _, j := range jobs {
		if active[j] > 0 {
			moved := h.jobMoved(j, i, way) >= h.jobMoved(j, begun[j], way)-lost[j]/2
			if moved && way != both {
				continue // the direction isn't needed, or peers do it
			}
			for _, f := range stalled[j] {
				f.Evidence = append(f.Evidence, othersActive(active[j]))
				if w.Silent < JobSilent { // the job may be about to stop
					f.Severity = Warning
				}
				if moved {
					f.Severity = Warning
					f.Evidence = append(f.Evidence, loadMoved())
				}
				list = append(list, f)
			}
			continue
		}
		if f := jobStall(stalled[j]); way == both && w.Silent >= JobSilent && h.at[i].Sub(f.Since) < w.Recent {
			list = append(list, f)
		}
	}
	return list
}

// jobMoved returns the number of a job's transfers in the time Silent before a frame.
func (h *history) jobMoved(j Job, i int, way way) (n float64) {
	for _, a := range h.agents {
		if t := h.tracks[a]; a.Job == j && i > t.first {
			n += h.during(t, i, h.windows.Silent).moved[way].transfers
		}
	}
	return n
}

// lastMove returns the last frame up to i in which the agent completed a transfer, or -1.
func (t *track) lastMove(i int, way way) int {
	for ; i > t.first; i-- {
		if t.totals[i].moved[way].transfers > t.totals[i-1].moved[way].transfers {
			return i
		}
	}
	return -1
}

// regular reports whether an agent transferred regularly until a frame.
func (h *history) regular(t *track, last int, way way) bool {
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
		counts = append(counts, h.during(t, n, w.Silent).moved[way].transfers)
	}
	if len(counts) == 0 { // a short watch
		counts = append(counts, h.during(t, last, w.Silent).moved[way].transfers)
	}
	now := counts[0]
	return now >= StillBusy*median(counts) && slices.Min(counts) >= MinTransfers
}

// idlers returns the agents without transfers while most of their peers have many. Those whose ring remembers
// transfers hang, or have no more work; others may be spare. Only a short watch needs this: later, regular
// transfers tell an agent that hangs from a spare one. The ring also shows that an agent has stopped only its reads
// or only its writes.
func (h *history) idlers(i int, known []Finding) (list []Finding) {
	stalled := make(map[string]bool)
	for _, f := range known {
		for _, a := range f.Agents {
			stalled[a.ID] = true
		}
	}
	watched := h.at[i].Sub(h.at[0])
	for _, w := range []way{both, writes, reads} {
		quiet, busy := make(map[Job][]Identity), make(map[Job]int)
		for _, a := range h.agents {
			t := h.tracks[a]
			if t.up(i) == No || i == t.first {
				continue
			}
			n := h.movedBy(t, i, h.windows.Window, w).transfers
			switch {
			case n == 0 && t.lastMove(i, w) < 0 && (w != both && h.moved(t, i, h.windows.Window) > 0 || w == both && (t.up(i) == Yes || t.before() > 0)):
				quiet[a.Job] = append(quiet[a.Job], a)
			case n >= MinTransfers:
				busy[a.Job]++
			}
		}
		for _, a := range h.agents {
			peers, t := busy[a.Job], h.tracks[a]
			if !slices.Contains(quiet[a.Job], a) || stalled[a.ID] || len(quiet[a.Job]) > peers {
				continue
			}
			if n := t.before(); n >= MinTransfers && (w == both || h.missing(t, i, w)) {
				list = append(list, stopped(a, w, t.up(i), n, peers, watched))
			} else if peers >= MinPeers-1 && len(quiet[a.Job]) <= peers/(MinPeers-1) {
				list = append(list, idle(a, w, peers, watched))
			}
		}
	}
	return list
}

// missing reports whether an agent would have completed transfers in a direction if it still did as often as its ring
// remembers, compared with the other direction.
func (h *history) missing(t *track, i int, w way) bool {
	this, other := t.remembered(w), t.remembered(reads-w)
	expected := this.transfers / other.transfers * h.movedBy(t, i, h.windows.Window, reads-w).transfers
	return this.transfers >= MinTransfers && other.transfers >= MinTransfers && expected >= MinTransfers
}
