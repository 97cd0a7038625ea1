// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// stalls returns the agents that hang or are idle, of jobs whose other agents transfer, and the jobs that stopped reading or
// writing. For jobs without any transfers, see still.
//
// NIXL reports completed transfers only, so an agent that hangs reports nothing. It is stalled if it
// runs, completed no transfer for the time Silent, and transferred regularly until then. Regularly
// means that it completed at least Regularly transfers in each such time of the last hour, and that its rate
// didn't fall below half of the median before it stopped: then it ran out of work. If it has few transfers, longer times count.
// Transfers that are far smaller than usual, such as heartbeats, don't count.
//
// Of an agent that hung before the watch or soon after it began, only the ring knows that it transferred. Without such
// transfers, it is idle: it may be spare. Neither is unusual if many agents are quiet.
func (h *history) stalls(i int) (list []Finding) {
	known := make(map[Key]bool) // an agent that hangs also hangs in each direction
	for _, w := range []way{both, writes, reads} {
		for _, job := range h.jobs {
			for _, f := range h.stallsOf(job, i, w) {
				if !known[f.Key()] {
					known[f.Key()], list = true, append(list, f)
				}
			}
		}
	}
	return list
}

func (h *history) stallsOf(job []*track, i int, w way) []Finding {
	var hung, earlier, active []*track
	var stalled, before, idle []Finding // agents that stopped in the watch, before it, or never began
	busy := 0
	for _, t := range job {
		if t.up(i) == No || !h.full(t, i, h.windows.Silent) || h.restarts(t, i, h.windows.Silent) > 0 || h.during(t, i, h.windows.Long).foreign > 0 {
			continue
		}
		recent, last := h.during(t, i, h.windows.Silent), h.lastMove(t, i, w)
		if last >= 0 && h.at[i].Sub(h.at[last]) < h.windows.Silent {
			active = append(active, t)
			busy += boolean(recent.moved[w].Transfers >= Regularly)
			continue
		}
		if w != both && recent.moved[reads-w].Transfers == 0 || t.hidden(i) {
			continue // not only one direction, or not known
		}
		if h.regular(t, i, last, w) {
			hung, stalled = append(hung, t), append(stalled, h.stall(t, w, i, last))
		} else if recent.failed == 0 { // else it doesn't hang
			if f, ok := h.stoppedBefore(t, i, last, w); ok {
				earlier, before = append(earlier, t), append(before, f)
			} else if last < 0 && t.remembered(w).Transfers < Regularly && (w != both || t.up(i) == Yes || t.before() > 0) {
				idle = append(idle, newFinding(Idle, []Identity{t.Identity}, fmt.Sprintf("no %s, unlike its peers", w.noun()),
					fmt.Sprintf("%s completed no %s in %s and, as far as its ring shows, few or none before, unlike its peers.", t.Identity, w.noun(), units.Age(h.at[i].Sub(h.at[0])))))
			}
		}
	}
	if stalled = h.weigh(hung, active, stalled, i, w); len(active) == 0 {
		if w != both && len(hung) == 0 && len(earlier) > 1 {
			stalled = []Finding{h.stoppedDirection(earlier, before, i, w)}
			stalled[0].Severity = Info // the load before isn't known
		}
		return stalled
	}
	if quiet := len(before) + len(idle); quiet <= busy {
		stalled = append(stalled, before...)
		if busy >= MinPeers-1 && quiet <= busy/(MinPeers-1) {
			stalled = append(stalled, idle...)
		}
	}
	for n := range stalled {
		stalled[n].Evidence = append(stalled[n].Evidence, counted(len(active), "another agent of the job still transfers", "%d other agents of the job still transfer"))
	}
	return stalled
}

// weigh sets the severity of stalls by what the peers do. A stall is critical only if a load balancer can't explain it: the
// load was spread evenly, and the others didn't take over what the agents did, even if the job's load falls by half in an hour.
// If only one direction stopped, its transfers must be missing.
func (h *history) weigh(hung, active []*track, list []Finding, i int, w way) []Finding {
	if len(hung) == 0 || len(active) == 0 && w == both {
		return nil
	}
	begun := i
	for _, t := range hung {
		begun = min(begun, h.lastMove(t, i, w))
	}
	end := h.index(i, h.at[i].Sub(h.at[begun])-2*h.windows.Silent)
	var now, then, lost, other float64
	for _, t := range active {
		now, then = now+h.rate(t, end, h.windows.Silent, w), then+h.rate(t, begun, h.windows.Silent, w)
	}
	for _, t := range hung {
		lost += h.rate(t, h.lastMove(t, i, w), h.windows.Silent, w)
	}
	if w != both {
		for _, t := range slices.Concat(hung, active) {
			other += h.rate(t, end, h.windows.Silent, reads-w) - h.rate(t, begun, h.windows.Silent, reads-w)
		}
		switch {
		case now-then+other >= lost/2:
			return nil // the direction isn't needed, or peers do it
		case len(active) > 0:
			return list
		case len(hung) == 1:
			return nil
		}
		return []Finding{h.stoppedDirection(hung, list, i, w)}
	}
	share, grown := lost/(lost+then), now/then
	for n := range list {
		f := &list[n]
		f.Severity = Warning
		if grown-1 >= share/(1-share)/2 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("its peers have taken over its load, as if a load balancer had: %s transfers per second instead of %s", units.Rate(now), units.Rate(then)))
		} else if h.even(slices.Concat(hung, active), begun, w) && grown*(1-share) < NotTaken && h.at[i].Sub(f.Since) >= JobSilent { // else the job may be about to stop
			f.Severity = Critical
		}
	}
	return list
}

// even reports whether the load of agents was spread evenly for long until a frame. Sessions that stick to agents may be spread
// evenly by chance at one time.
func (h *history) even(agents []*track, to int, w way) bool {
	const long = 30 * time.Minute
	uneven, known := 0.0, 0.0 // standard deviations per mean
	for ago := time.Duration(0); ago < long; ago += max(h.windows.Silent, time.Second) {
		at := h.index(to, ago)
		var count, sum, squares float64
		for _, t := range agents {
			if r := h.rate(t, at, h.windows.Silent, w); r > 0 {
				count, sum, squares = count+1, sum+r, squares+r*r
			}
		}
		if count > 0 {
			mean := sum / count
			uneven, known = uneven+math.Sqrt(max(0, squares/count-mean*mean))/mean, known+1
		}
	}
	return uneven <= EvenLoad*known
}

// stoppedDirection returns the finding about a job that stopped reading or writing.
func (h *history) stoppedDirection(hung []*track, list []Finding, i int, w way) Finding {
	since := slices.MaxFunc(list, func(a, b Finding) int { return a.Since.Compare(b.Since) }).Since
	quiet := h.quiet(since, i)
	f := newFinding(JobStalled, identities(hung), fmt.Sprintf("no %s for %s, like its peers", w.noun(), quiet),
		fmt.Sprintf("No agent of %s completed a %s for %s, although %d did before, and complete %ss.", hung[0].Job, w.noun(), quiet, len(hung), (reads-w).noun()), list[0].Evidence...)
	f.Severity, f.Since = Warning, since
	f.Not = "It needn't be a problem: the job may have another role now."
	return f
}

// stoppedBefore returns the finding about an agent that stopped before the watch, or soon after it began. The transfers that
// its ring remembers and those of the watch show that it is used; the pauses in the watch, that it makes none that is so long.
func (h *history) stoppedBefore(t *track, i, last int, w way) (f Finding, ok bool) {
	const far = 5 // times as long
	remembered := "its ring still has " + units.Count(t.before()) + " transfers from before"
	if w != both { // only the older half is known by direction
		remembered = "its ring still has " + units.Count(t.remembered(w).Transfers) + " or more " + w.noun() + "s from before"
	}
	if last < 0 {
		if t.before() < Regularly || w != both && !h.missing(t, i, w) {
			return f, false
		}
		f = h.stall(t, w, i, last, remembered)
	} else {
		n := t.totals[last].moved[w].Transfers - t.totals[t.first].moved[w].Transfers
		if w != both || h.full(t, last, h.windows.Regular+h.windows.Silent) || t.before()+n < Regularly || h.at[i].Sub(h.at[last]) < far*h.pause(t, last, w) {
			return f, false
		}
		f = h.stall(t, w, i, last, remembered)
	}
	f.Severity = Warning
	return f, true
}

// pause returns the longest time up to a frame in which an agent completed no transfer.
func (h *history) pause(t *track, to int, w way) (longest time.Duration) {
	begin := t.first
	for i := t.first + 1; i <= to; i++ {
		if t.totals[i].moved[w].Transfers > t.totals[i-1].moved[w].Transfers {
			longest, begin = max(longest, h.at[i].Sub(h.at[begin])), i
		}
	}
	return longest
}

// hidden reports whether the ring of an agent that shows no transfers is full, so that nobody sees what the agent does.
func (t *track) hidden(i int) bool { return t.states[i] != nil && t.states[i].Fill() == 1 }

// usual returns the mean size of an agent's transfers, including those that its ring remembers.
func (t *track) usual(i int, w way) float64 {
	m := t.totals[i].moved[w].minus(t.totals[t.first].moved[w]).plus(t.remembered(w))
	return float64(m.Bytes) / max(1, float64(m.Transfers))
}

// lastMove returns the last frame up to i in which the agent completed a transfer that isn't far smaller than usual, or -1.
func (h *history) lastMove(t *track, i int, w way) int {
	usual := t.usual(i, w)
	for ; i > t.first; i-- {
		step := t.totals[i].moved[w].minus(t.totals[i-1].moved[w])
		if step.Transfers > 0 && float64(step.Bytes) >= Heartbeat*usual*float64(step.Transfers) {
			return i
		}
	}
	return -1
}

// regular reports whether an agent transferred regularly until a frame, and is quiet for long enough since.
func (h *history) regular(t *track, i, last int, w way) bool {
	const few, longer, quiet = 6, 5, 7 // of an agent with few transfers, in a longer time, and how long none; rare work comes in waves
	return last >= 0 && (h.steady(t, last, w, h.windows.Silent, h.windows.Regular, Regularly) ||
		h.at[i].Sub(h.at[last]) >= quiet*h.windows.Silent && h.steady(t, last, w, longer*h.windows.Silent, 2*longer*h.windows.Silent, few))
}

// steady reports whether an agent completed at least a number of transfers in each window until a frame, and no fewer in the last
// one than half of the median.
func (h *history) steady(t *track, last int, w way, window, known time.Duration, least float64) bool {
	if !h.full(t, last, known) {
		return false
	}
	size := t.usual(last, w)
	count := func(n int) float64 {
		d := h.during(t, n, window)
		usual := min(float64(d.moved[w].Transfers), float64(d.moved[w].Bytes)/(Heartbeat*size))
		if size == 0 {
			usual = float64(d.moved[w].Transfers)
		}
		return usual * min(1, window.Seconds()/d.seconds)
	}
	counts := []float64{count(last)}
	now, step := counts[0], max(h.windows.Silent/3, time.Nanosecond)
	for ago := step; ago <= h.windows.Recent; ago += step {
		n := h.index(last, ago)
		if !h.full(t, n, window) {
			break
		}
		counts = append(counts, count(n))
	}
	return now >= StillBusy*median(counts) && slices.Min(counts) >= least
}

// missing reports whether an agent would have completed transfers in a direction if it still did as often as its ring
// remembers, compared with the other direction.
func (h *history) missing(t *track, i int, w way) bool {
	this, other := float64(t.remembered(w).Transfers), float64(t.remembered(reads-w).Transfers)
	return this >= Regularly && other >= Regularly && this/other*float64(h.during(t, i, h.windows.Silent).moved[reads-w].Transfers) >= Regularly
}

// stall returns the finding about an agent that stopped at a frame, or before the watch.
func (h *history) stall(t *track, w way, i, last int, evidence ...string) Finding {
	var since time.Time
	although := "it did before"
	if last >= 0 {
		since = h.at[last]
		evidence = append(evidence, "before: "+units.Rate(h.rate(t, last, h.windows.Silent, w))+" transfers per second")
	}
	quiet := h.quiet(since, i)
	if w != both {
		although = "it completes " + (reads - w).noun() + "s"
	}
	noun := w.noun()
	if last >= 0 && h.during(t, i, h.windows.Silent).moved[w].Transfers > 0 {
		noun += " of the usual size"
	}
	f := newFinding(Stalled, []Identity{t.Identity}, fmt.Sprintf("no %s for %s", noun, quiet),
		fmt.Sprintf("%s completed no %s for %s, although %s.", t.Identity, noun, quiet, although), evidence...)
	f.Since = since
	if w != both {
		f.Severity = Warning
	}
	if t.up(i) == Unknown {
		f.Not += " It isn't known whether the agent still runs."
	}
	return f
}

// quiet says for how long nothing was completed, since a time or since before the watch.
func (h *history) quiet(since time.Time, i int) string {
	if since.IsZero() {
		return units.Age(h.at[i].Sub(h.at[0])) + " or more"
	}
	return units.Age(h.at[i].Sub(since))
}

// still returns the jobs whose agents complete no transfers, although some did before, which may have exited: they hang, or
// have no work.
func (h *history) still(i int) (list []Finding) {
	if h.at[i].Sub(h.at[0]) < h.windows.Silent {
		return nil
	}
	for _, job := range h.jobs {
		var stopped []Identity
		last, running, active, noun := 0, false, false, both.noun()
		for _, t := range job {
			running = running || t.up(i) != No
			n := h.lastMove(t, i, both)
			active = active || t.hidden(i) || n >= 0 && h.at[i].Sub(h.at[n]) < h.windows.Window
			if h.during(t, i, h.windows.Silent).moved[both].Transfers > 0 {
				noun = both.noun() + " of the usual size"
			}
			if last = max(last, n); n > 0 || t.before() > 0 {
				stopped = append(stopped, t.Identity)
			}
		}
		if !running || active || len(stopped) == 0 {
			continue
		}
		quiet := h.quiet(h.at[last], i)
		if last == 0 {
			quiet += " or more"
		}
		like := ", like its peers"
		if len(job) == 1 {
			like = ""
		}
		f := newFinding(JobStalled, stopped, fmt.Sprintf("no %s for %s%s", noun, quiet, like), "N"+noTransfer(" of "+job[0].Job.String(), noun, len(stopped))[1:]+".")
		f.Since = h.at[last]
		list = append(list, f)
	}
	return list
}

func noTransfer(of, noun string, before int) string {
	s := "no agent" + of + " completed a " + noun
	if before > 0 {
		s += ", although " + counted(before, "one did", "%d did") + " before"
	}
	return s
}
