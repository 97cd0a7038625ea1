// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"maps"
	"slices"
)

// postBound returns the agents that need more than half of their transfer time for posting.
func (h *history) postBound(i int) (list []Finding) {
	for _, a := range h.agents {
		t := h.tracks[a]
		p, ok := h.pace(t, i, both)
		if !ok {
			continue
		}
		d := h.during(t, i, h.windows.Window)
		if post := d.post / d.moved[both].transfers; d.post > PostShare*d.moved[both].seconds && post > PostTime.Seconds() {
			list = append(list, posting(a, p, post))
		}
	}
	return list
}

// smallBehindLarge returns the agents whose small transfers wait behind large ones. Most of their
// transfers are far smaller than the mean size, but take nearly as long as the mean time, although a
// tenth is fast. If the time depended on the size, most transfers would also be far faster.
func (h *history) smallBehindLarge(i int) (list []Finding) {
	for _, a := range h.agents {
		t := h.tracks[a]
		p, ok := h.pace(t, i, both)
		from := t.states[h.index(i, h.windows.Window)]
		if !ok || from == nil {
			continue
		}
		sizes, times := t.states[i].Sizes.Since(from.Sizes), t.states[i].Times.Since(from.Times)
		size, took, fast := sizes.Quantile(MostTransfers), times.Quantile(MostTransfers), times.Quantile(FastTransfers)
		if size < MixedSizes*p.size && took > MixedTimes*p.time && fast < WaitingFast*took && took > WaitingTime.Seconds() {
			list = append(list, waiting(a, p, size, took, fast))
		}
	}
	return list
}

// failing returns the jobs with agents whose operations fail, and the agents with a few that fail again and
// again. Operations that were canceled don't count.
//
// A job fails if more than a tenth of an agent's operations fail in the short window, which ends soon after
// the last failure, and a twentieth in the long window. Statuses like not_found may be expected, so
// they don't make a job fail. An agent's operations fail again and again if more than SomeErrors do in two
// windows: a peer that restarts within a minute isn't in both.
func (h *history) failing(i int) (list []Finding) {
	w := h.windows
	agents := make(map[Job][]Identity)
	types := make(map[Job]map[string]float64)
	ratios := make(map[Job]float64)
	var jobs []Job
	for _, a := range h.agents {
		t := h.tracks[a]
		short, long := h.during(t, i, w.Short), h.during(t, i, w.Long)
		if severe := long.failed - long.expected; severe > MinErrors &&
			short.failed-short.expected > ErrorShare*short.operations() && severe > ErrorLong*long.operations() {
			if agents[a.Job] == nil {
				jobs, types[a.Job] = append(jobs, a.Job), make(map[string]float64)
			}
			agents[a.Job] = append(agents[a.Job], a)
			ratios[a.Job] = max(ratios[a.Job], short.failed/short.operations())
			h.errorTypes(t, i, types[a.Job])
			continue
		}
		now, before := h.during(t, i, w.Again), h.during(t, h.index(i, w.Apart), w.Again)
		if now.failed+before.failed >= FewErrors && now.failed > SomeErrors*now.operations() && before.failed > SomeErrors*before.operations() {
			kinds := make(map[string]float64)
			h.errorTypes(t, i, kinds)
			list = append(list, someFailures(a, now.failed/now.operations(), kinds))
		}
	}
	for _, j := range jobs {
		list = append(list, failures(agents[j], ratios[j], types[j]))
	}
	return list
}

// errorTypes adds the errors of an agent in the long window, by type.
func (h *history) errorTypes(t *track, i int, sum map[string]float64) {
	to, from := t.states[i], t.states[h.index(i, h.windows.Long)]
	if to == nil {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(to.Errors)) {
		before := uint64(0)
		if from != nil {
			before = from.Errors[kind]
		}
		if n := grown(before, to.Errors[kind]); n > 0 && kind != Canceled {
			sum[kind] += n
		}
	}
}

// operations returns the number of operations that ended.
func (t totals) operations() float64 { return t.failed + t.moved[both].transfers }
