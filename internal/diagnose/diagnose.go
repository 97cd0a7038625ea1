// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"maps"
	"slices"
	"sort"
	"time"
)

// Result is what a diagnosis finds.
type Result struct {
	Findings []Finding // the worst first
	Checks   []Check   // what was looked for
	Still    string    // says that no agent completed a transfer, or none of a job that did before; else empty
	Draining map[string]Draining
}

// Now returns what a tool says at the last of some frames, which are in order of time: findings, however long they have
// held. Most have no Since.
func Now(frames []*Frame, w Windows) Result {
	if len(frames) == 0 {
		return Result{}
	}
	h := newHistory(frames, w)
	last := len(frames) - 1
	found := h.findings(last)
	r := Result{Findings: found, Draining: make(map[string]Draining, len(h.agents))}
	r.Checks, r.Still = h.checks(found)
	Sort(found)
	for _, t := range h.agents {
		r.Draining[t.ID] = h.draining(t, last)
	}
	return r
}

// Begun sets the times since when findings have held, at a time and given those at the frame before. It returns them.
func (r *Result) Begun(at time.Time, before map[Key]time.Time) map[Key]time.Time {
	since := make(map[Key]time.Time, len(r.Findings))
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Since.IsZero() {
			f.Since = before[f.Key()]
		}
		if f.Since.IsZero() {
			f.Since = at
		}
		since[f.Key()] = f.Since
	}
	return since
}

// Watched is [Now] at the end of a watch, with the times since when the findings have held.
func Watched(frames []*Frame, w Windows) (r Result) {
	var since map[Key]time.Time
	for i, f := range frames {
		r = Now(frames[:i+1], w)
		since = r.Begun(f.Time, since)
	}
	return r
}

// Held is [Now] for frames of the past: only with what has held for as long as the alerts require, and since when.
func Held(frames []*Frame, w Windows) Result {
	r := Now(frames, w)
	if len(frames) == 0 {
		return r
	}
	end := frames[len(frames)-1].Time
	since, open := make(map[Key]time.Time), make(map[Key]bool)
	for _, f := range r.Findings {
		since[f.Key()], open[f.Key()] = end, true
	}
	for ago := time.Minute; len(open) > 0; ago += time.Minute {
		n, found := sort.Search(len(frames), func(n int) bool { return frames[n].Time.After(end.Add(-ago)) }), make(map[Key]bool)
		if n == 0 {
			break
		}
		for _, f := range newHistory(frames[:n], w).findings(n - 1) {
			found[f.Key()] = true
		}
		maps.DeleteFunc(open, func(k Key, _ bool) bool { return !found[k] })
		for k := range open {
			since[k] = frames[n-1].Time
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return end.Sub(since[f.Key()]) < Hold })
	r.Begun(end, since)
	return r
}

// findings returns the findings at a frame.
func (h *history) findings(i int) []Finding {
	list := h.stragglers(i)
	list, bound := append(list, h.slowdowns(i, list)...), h.postBound(i)
	for n := range list { // posting may explain why an agent is slow
		f := &list[n]
		if slices.ContainsFunc(bound, func(b Finding) bool { return b.first().ID == f.first().ID }) {
			f.Not, f.Next = "It needn't be the network: most of the time is spent on posting.", bound[0].Next
		}
	}
	list = append(list, bound...)
	_, other := h.path(i)
	list = append(list, other...)
	for _, find := range []func(int) []Finding{h.stalls, h.still, h.failing, h.telemetry, h.unknown, h.gone, h.vanished, h.crashLoops} {
		list = append(list, find(i)...)
	}
	return list
}
