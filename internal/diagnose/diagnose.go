// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "time"

// Diagnose returns the findings at the last of some samples, the worst first. The samples are in
// order of time.
func Diagnose(samples []Sample, w Windows) []Finding {
	if len(samples) == 0 {
		return nil
	}
	h := newHistory(samples, w)
	last := len(samples) - 1
	list := h.findings(last)
	if len(list) == 0 {
		return nil
	}
	var kept []Finding
	since := h.since(list, last)
	for _, f := range list {
		begin := since[f.Key()]
		if h.at[last].Sub(begin) < w.hold(f.Kind) {
			continue
		}
		if f.Since.IsZero() {
			f.Since = begin
		}
		kept = append(kept, f)
	}
	Sort(kept)
	return kept
}

// Now returns the findings at the last of some samples, the worst first, however long they have
// held. Most have no Since: a caller that diagnoses each sample knows when a finding began.
func Now(samples []Sample, w Windows) []Finding {
	if len(samples) == 0 {
		return nil
	}
	list := newHistory(samples, w).findings(len(samples) - 1)
	Sort(list)
	return list
}

// hold returns how long a finding must hold.
func (w *Windows) hold(k Kind) time.Duration {
	switch k {
	case Straggler, Slower, JobSlower, Stalled, JobStalled, PostBound, SmallBehindLarge:
		return w.Hold
	case Failing:
		return w.Failed
	case Gone:
		return w.Down
	default:
		return 0
	}
}

// findings returns the findings at a sample, before they are known to hold.
func (h *history) findings(i int) []Finding {
	list := h.stragglers(i)
	list = append(list, h.slowdowns(i, list)...)
	list = append(list, h.stalls(i)...)
	list = append(list, h.postBound(i)...)
	list = append(list, h.smallBehindLarge(i)...)
	list = append(list, h.failing(i)...)
	list = append(list, h.losses(i)...)
	list = append(list, h.gone(i)...)
	if h.windows.Hold == 0 {
		list = append(list, h.idlers(i, list)...)
	}
	return list
}

// since returns the times from which findings have held without interruption.
func (h *history) since(list []Finding, last int) map[Key]time.Time {
	const most = 100 // samples
	since, open := make(map[Key]time.Time), make(map[Key]bool)
	for i := range list {
		since[list[i].Key()], open[list[i].Key()] = h.at[last], true
	}
	step := max(1, last/most)
	for i := last - step; i > 0 && len(open) > 0; i -= step {
		held := make(map[Key]bool)
		for _, f := range h.findings(i) {
			held[f.Key()] = true
		}
		for k := range open {
			if held[k] {
				since[k] = h.at[i]
			} else {
				delete(open, k)
			}
		}
	}
	return since
}
