// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// stalls returns the agents that hang or are idle, of jobs whose other agents transfer. For the others, see still.
//
// NIXL reports completed transfers only, so an agent that hangs reports nothing. It is stalled if it
// runs, completed no transfer for the time Silent, and transferred regularly until then. Regularly
// means that it completed at least Regularly transfers in each such time of the last hour, and that its rate
// didn't fall below half of the median before it stopped: then it ran out of work.
//
// It is critical unless its peers have taken over its load, as if a load balancer had moved it. Events that another
// consumer took aren't missed transfers. Reads may hang while writes don't, or the other way round. That is a
// warning if peers still do both.
//
// Of an agent that hung before the watch, only the ring knows that it transferred. Without such transfers, it is idle: it
// may be spare. Neither is unusual if many agents are quiet.
func (h *history) stalls(i int) (list []Finding) {
	for _, w := range []way{both, writes, reads} {
		for _, job := range h.jobs {
			list = append(list, h.stallsOf(job, i, w)...)
		}
	}
	return list
}

func (h *history) stallsOf(job []*track, i int, w way) (stalled []Finding) {
	silent, watched := h.windows.Silent, units.Age(h.at[i].Sub(h.at[0]))
	var before, idle []Finding // of agents that hung before the watch, or are idle
	var active, busy int
	var lost float64 // transfers of stalled agents before
	begun := i       // the first frame of a stall
	for _, t := range job {
		long := h.during(t, i, h.windows.Long)
		if t.up(i) == No || !h.full(t, i, silent) || long.foreign > 0 {
			continue
		}
		recent := h.during(t, i, silent)
		m := recent.moved
		if m[w].Transfers > 0 {
			active++
			busy += boolean(m[w].Transfers >= Regularly)
			continue
		}
		if w != both && m[both].Transfers == 0 || t.hidden(i) {
			continue // not only one direction, or not known
		}
		switch last, n := t.lastMove(i, w), t.before(); {
		case h.regular(t, last, w):
			n := h.completed(t, last, silent, w)
			begun, lost = min(begun, last), lost+n
			f := stall(t, w, i, units.Age(h.at[i].Sub(h.at[last])), fmt.Sprintf("before: %s transfers per second, regularly", units.Rate(n/silent.Seconds())))
			f.Since = h.at[last]
			stalled = append(stalled, f)
		case recent.failed > 0: // it doesn't hang
		case last >= 0:
			if f, ok := h.stoppedEarly(t, i, last, w); ok {
				before = append(before, f)
			}
		case n >= Regularly && (w == both || h.missing(t, i, w)):
			f := stall(t, w, i, watched+" or more", fmt.Sprintf("its ring still has %s transfers from before", units.Count(n)))
			f.Severity = Warning
			before = append(before, f)
		case w != both || t.up(i) == Yes || n > 0:
			idle = append(idle, newFinding(Idle, []Identity{t.Identity}, fmt.Sprintf("no %s, unlike its peers", w.noun()),
				fmt.Sprintf("%s completed no %s in %s and, as far as its ring shows, few or none before, unlike its peers.", t.Identity, w.noun(), watched)))
		}
	}
	if active == 0 {
		return nil
	}
	var now, then float64 // transfers of the job
	for _, t := range job {
		now += h.completed(t, i, silent, w)
		then += h.completed(t, begun, silent, w)
	}
	moved := now >= then-lost/2
	if moved && w != both {
		stalled = nil // the direction isn't needed, or peers do it
	}
	for n := range stalled {
		if f := &stalled[n]; moved {
			f.Evidence, f.Severity = append(f.Evidence, "its peers have taken over its load, as if a load balancer had"), Warning
		} else if h.at[i].Sub(f.Since) < JobSilent { // the job may be about to stop
			f.Severity = Warning
		}
	}
	if quiet := len(before) + len(idle); quiet <= busy {
		stalled = append(stalled, before...)
		if busy >= MinPeers-1 && quiet <= busy/(MinPeers-1) {
			stalled = append(stalled, idle...)
		}
	}
	for n := range stalled {
		stalled[n].Evidence = append(stalled[n].Evidence, counted(active, "another agent of the job still transfers", "%d other agents of the job still transfer"))
	}
	return stalled
}

// stoppedEarly returns the finding about an agent that stopped soon after the watch began. The transfers that its ring
// remembers and those of the watch show that it is used; the rate in the watch, that it would have completed some since.
func (h *history) stoppedEarly(t *track, i, last int, w way) (f Finding, ok bool) {
	const some = 5 // by chance, an agent completes none of so many in one of 150 cases
	watched, quiet := h.at[last].Sub(h.at[t.first]), h.at[i].Sub(h.at[last])
	n := float64(t.totals[last].moved[w].Transfers - t.totals[t.first].moved[w].Transfers)
	if w != both || watched >= h.windows.Regular+h.windows.Silent || float64(t.before())+n < Regularly || n*quiet.Seconds() < some*watched.Seconds() {
		return f, false
	}
	f = stall(t, w, i, units.Age(quiet), fmt.Sprintf("before: %s transfers in %s, and %s that its ring remembered", units.Count(uint64(n)), units.Age(watched), units.Count(t.before())))
	f.Severity, f.Since = Warning, h.at[last]
	return f, true
}

// hidden reports whether the ring of an agent that shows no transfers is full, so that nobody sees what the agent does.
func (t *track) hidden(i int) bool { return t.states[i] != nil && t.states[i].Fill() == 1 }

// lastMove returns the last frame up to i in which the agent completed a transfer, or -1.
func (t *track) lastMove(i int, w way) int {
	for ; i > t.first; i-- {
		if t.totals[i].moved[w].Transfers > t.totals[i-1].moved[w].Transfers {
			return i
		}
	}
	return -1
}

// regular reports whether an agent transferred regularly until a frame.
func (h *history) regular(t *track, last int, w way) bool {
	if last < 0 || !h.full(t, last, h.windows.Regular) {
		return false
	}
	silent := h.windows.Silent
	counts := []float64{h.completed(t, last, silent, w)}
	now, step := counts[0], max(silent/3, time.Nanosecond)
	for ago := step; ago <= h.windows.Recent; ago += step {
		n := h.index(last, ago)
		if !h.full(t, n, silent) {
			break
		}
		counts = append(counts, h.completed(t, n, silent, w))
	}
	return now >= StillBusy*median(counts) && slices.Min(counts) >= Regularly
}

// missing reports whether an agent would have completed transfers in a direction if it still did as often as its ring
// remembers, compared with the other direction.
func (h *history) missing(t *track, i int, w way) bool {
	this, other := float64(t.remembered(w).Transfers), float64(t.remembered(reads-w).Transfers)
	return this >= Regularly && other >= Regularly && this/other*h.completed(t, i, h.windows.Silent, reads-w) >= Regularly
}

func stall(t *track, w way, i int, quiet string, evidence ...string) Finding {
	although := "it did before"
	if w != both {
		although = "it completes " + (reads - w).noun() + "s"
	}
	f := newFinding(Stalled, []Identity{t.Identity}, fmt.Sprintf("no %s for %s", w.noun(), quiet),
		fmt.Sprintf("%s completed no %s for %s, although %s.", t.Identity, w.noun(), quiet, although), evidence...)
	if w != both {
		f.Severity = Warning
	}
	if t.up(i) == Unknown {
		f.Not += " It isn't known whether the agent still runs."
	}
	return f
}

// still returns the jobs whose agents complete no transfers, although some did before, which may have exited: they hang, or
// have no work.
func (h *history) still(i int) (list []Finding) {
	if h.at[i].Sub(h.at[0]) < h.windows.Silent {
		return nil
	}
	for _, job := range h.jobs {
		var stopped []Identity
		last, running, active := 0, false, false
		for _, t := range job {
			running = running || t.up(i) != No
			active = active || t.hidden(i) || h.completed(t, i, h.windows.Window, both) > 0
			n := t.lastMove(i, both)
			if last = max(last, n); n > 0 || t.before() > 0 {
				stopped = append(stopped, t.Identity)
			}
		}
		if !running || active || len(stopped) == 0 {
			continue
		}
		quiet := units.Age(h.at[i].Sub(h.at[last]))
		if last == 0 {
			quiet += " or more"
		}
		f := newFinding(JobStalled, stopped, fmt.Sprintf("no transfer for %s, like its peers", quiet), "N"+noTransfer(" of "+job[0].Job.String(), len(stopped))[1:]+".")
		f.Since = h.at[last]
		list = append(list, f)
	}
	return list
}

func noTransfer(of string, before int) string {
	s := "no agent" + of + " completed a transfer"
	if before > 0 {
		s += ", although " + counted(before, "one did", "%d did") + " before"
	}
	return s
}
