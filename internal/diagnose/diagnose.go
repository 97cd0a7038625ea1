// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "time"

// Result is what a diagnosis finds.
type Result struct {
	Findings []Finding // the worst first
	Checks   []Check   // what was looked for
	Still    string    // says that no agent completed a transfer, or none of a job that did before; else empty
	Draining map[string]Draining
}

// Diagnose returns the findings at the last of some frames that have held for as long as the alerts
// require. The frames are in order of time.
func Diagnose(frames []*Frame, w Windows) []Finding {
	if len(frames) == 0 {
		return nil
	}
	h := newHistory(frames, w)
	last := len(frames) - 1
	list := h.findings(last)
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

// Now returns what a tool says at the last of some frames: findings, however long they have held, with what is wrong
// with the consumers of the rings. Most findings have no Since: a caller that diagnoses each frame knows when one began.
func Now(frames []*Frame, w Windows) Result { return now(frames, w, false) }

// Watched is [Now] at the end of a watch, with the times since when the findings have held.
func Watched(frames []*Frame, w Windows) Result { return now(frames, w, true) }

func now(frames []*Frame, w Windows, since bool) Result {
	if len(frames) == 0 {
		return Result{}
	}
	h := newHistory(frames, w)
	last := len(frames) - 1
	found := h.findings(last)
	c := h.coverage(found)
	r := Result{Checks: h.checks(c), Still: c.still, Draining: make(map[string]Draining, len(h.agents))}
	if since {
		begun := h.since(found, last)
		for i := range found {
			if found[i].Since.IsZero() {
				found[i].Since = begun[found[i].Key()]
			}
		}
	}
	r.Findings = explain(found, h.undrained(last))
	Sort(r.Findings)
	for _, a := range h.agents {
		r.Draining[a.ID] = h.draining(h.tracks[a], last)
	}
	return r
}

// hold returns how long a finding must hold.
func (w *Windows) hold(k Kind) time.Duration {
	switch k {
	case Straggler, Slower, JobSlower, Stalled, JobStalled, PostBound, SmallBehindLarge:
		return w.Hold
	case Failing:
		return w.Failed
	default:
		return 0
	}
}

// findings returns the findings at a frame, before they are known to hold.
func (h *history) findings(i int) []Finding {
	list := h.stragglers(i)
	list = append(list, h.slowdowns(i, list)...)
	list = append(list, h.stalls(i)...)
	list = append(list, h.postBound(i)...)
	list = append(list, h.smallBehindLarge(i)...)
	list = append(list, h.failing(i)...)
	list = append(list, h.losses(i)...)
	list = append(list, h.gone(i)...)
	list = append(list, h.crashLoops(i)...)
	list = append(list, h.memoryGrows(i)...)
	if h.windows.Hold == 0 {
		list = append(list, h.idlers(i, list)...)
	}
	return list
}

// since returns the times from which findings have held without interruption.
func (h *history) since(list []Finding, last int) map[Key]time.Time {
	const most = 100 // frames
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
