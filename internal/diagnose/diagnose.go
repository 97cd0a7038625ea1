// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

// Result is what a diagnosis finds.
type Result struct {
	Findings []Finding // the worst first
	Checks   []Check   // what was looked for
	Still    string    // says that no agent completed a transfer, or none of a job that did before; else empty
	Draining map[string]Draining
}

// Now returns what a tool says at the last of some frames, which are in order of time: findings, however long they have
// held. Most have no Since: a caller that diagnoses each frame knows when one began.
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
	r := Result{Draining: make(map[string]Draining, len(h.agents))}
	r.Checks, r.Still = h.checks(found)
	if since {
		h.setSince(found, last)
	}
	r.Findings = explain(found, h.undrained(last))
	Sort(r.Findings)
	for _, t := range h.agents {
		r.Draining[t.ID] = h.draining(t, last)
	}
	return r
}

// findings returns the findings at a frame.
func (h *history) findings(i int) []Finding {
	list := h.stragglers(i)
	list = append(list, h.slowdowns(i, list)...)
	for _, find := range []func(int) []Finding{h.stalls, h.postBound, h.smallBehindLarge, h.failing, h.losses, h.gone, h.crashLoops, h.memoryGrows} {
		list = append(list, find(i)...)
	}
	return append(list, h.idlers(i, list)...)
}

// setSince sets the times from which findings have held without interruption.
func (h *history) setSince(list []Finding, last int) {
	const most = 100 // frames
	open := make(map[Key]*Finding)
	for n := range list {
		if f := &list[n]; f.Since.IsZero() {
			f.Since, open[f.Key()] = h.at[last], f
		}
	}
	step := max(1, last/most)
	for i := last - step; i > 0 && len(open) > 0; i -= step {
		held := make(map[Key]*Finding)
		for _, f := range h.findings(i) {
			if o := open[f.Key()]; o != nil {
				o.Since, held[f.Key()] = h.at[i], o
			}
		}
		open = held
	}
}
