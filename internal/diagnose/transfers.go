// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// postBound returns the agents that need more than half of their transfer time for posting.
func (h *history) postBound(i int) (list []Finding) {
	for _, t := range h.agents {
		p, ok := h.pace(t, i, both)
		if !ok {
			continue
		}
		if share := p.post / p.time; share > PostShare && p.post > PostTime.Seconds() {
			f := newFinding(PostBound, []Identity{t.Identity}, percent(share)+" of the time is posting",
				fmt.Sprintf("%s spends %s of its transfer time on posting, before any data moves.", t.Identity, percent(share)), p.String(), "mean post time: "+units.Duration(p.post))
			f.Ratio = share
			list = append(list, f)
		}
	}
	return list
}

// failing returns the jobs with agents whose operations fail, and the agents with a few that fail again and
// again. Operations that were canceled count if they are a large share for long, and more than usual: then a time-out cancels them.
//
// A job fails if more than a tenth of an agent's operations fail in the short window, which ends soon after
// the last failure, and a twentieth in the long window. Statuses like not_found may be expected, so
// they don't make a job fail. An agent's operations fail again and again if more than SomeErrors do in two
// windows: a peer that restarts within a minute isn't in both.
func (h *history) failing(i int) (list []Finding) {
	w := h.windows
	for _, job := range h.jobs {
		var failing []*track
		ratio, upTo := 0.0, ""
		for _, t := range job {
			short, long := h.during(t, i, w.Short), h.during(t, i, w.Long)
			now, before := h.during(t, i, w.Again), h.during(t, h.index(i, w.Apart), w.Again)
			severe := long.failed - long.expected
			switch {
			case severe > MinErrors && short.failed-short.expected > ErrorShare*short.operations() && severe > ErrorLong*long.operations():
				failing, ratio = append(failing, t), max(ratio, short.failed/short.operations())
			case now.failed+before.failed >= FewErrors && now.failed > SomeErrors*now.operations() && before.failed > SomeErrors*before.operations():
				share := now.failed / now.operations()
				f := newFinding(SomeFail, []Identity{t.Identity}, percent(share)+" fail",
					fmt.Sprintf("%s of the operations of %s fail, again and again.", percent(share), t.Identity), h.errorTypes(i, t))
				f.Ratio = share
				list = append(list, f)
			default:
				share, usual, known := h.canceled(t, i)
				if share <= max(CanceledShare, UsualCanceled*usual) {
					continue
				}
				than := ""
				if known {
					than = ", instead of " + percent(usual)
				}
				f := newFinding(SomeFail, []Identity{t.Identity}, percent(share)+" canceled",
					fmt.Sprintf("%s or more of the operations of %s are canceled%s.", percent(share), t.Identity, than), "canceled: "+units.Count(uint64(now.canceled)))
				f.Ratio, f.Not = share, "If clients cancel their requests, this is normal. If a time-out does, a peer or the fabric hangs."
				list = append(list, f)
			}
		}
		if len(failing) == 0 {
			continue
		}
		who := failing[0].Identity.String()
		if len(failing) > 1 {
			who, upTo = fmt.Sprintf("%d agents of %s", len(failing), failing[0].Job), "up to "
		}
		f := newFinding(Failing, identities(failing), upTo+percent(ratio)+" fail",
			fmt.Sprintf("Operations of %s fail, %s%s of them.", who, upTo, percent(ratio)), h.errorTypes(i, failing...))
		f.Ratio = ratio
		list = append(list, f)
	}
	return list
}

// canceled returns the share of an agent's operations that are canceled for long, and the usual one.
func (h *history) canceled(t *track, i int) (share, usual float64, known bool) {
	of := func(i int, ago time.Duration) float64 {
		d := h.during(t, i, ago)
		return d.canceled / max(FewErrors, d.operations()+d.canceled)
	}
	w := h.windows
	share, usual = min(of(i, w.Again), of(h.index(i, w.Apart), w.Again)), CanceledShare
	n := h.index(i, w.Apart+w.Again)
	if known = h.full(t, n, w.Again); known {
		usual = of(n, w.Recent)
	}
	return share, usual, known
}

// errorTypes lists the errors of agents in the long window by type, the most frequent first.
func (h *history) errorTypes(i int, agents ...*track) string {
	sum := make(map[string]float64)
	for _, t := range agents {
		to, from := t.states[i], t.states[h.index(i, h.windows.Long)]
		if to == nil {
			continue
		}
		for kind, n := range to.Errors {
			before := uint64(0)
			if from != nil {
				before = from.Errors[kind]
			}
			if n := grown(before, n); n > 0 && kind != Canceled {
				sum[kind] += n
			}
		}
	}
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(sum), func(a, b string) int { return cmp.Or(cmp.Compare(sum[b], sum[a]), strings.Compare(a, b)) }) {
		parts = append(parts, units.Count(uint64(sum[k]))+" "+k)
	}
	return "errors: " + strings.Join(parts, ", ")
}
