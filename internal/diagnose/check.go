// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Check is something that a diagnosis looks for.
type Check struct {
	Name   string `json:"check"`
	Kinds  []Kind `json:"kinds"`  // what it finds
	Reason string `json:"reason"` // why it doesn't cover all agents; empty if it does
}

// Unjudged returns the checks that don't cover all agents.
func Unjudged(checks []Check) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Reason == "" })
}

// Why an agent isn't judged.
const (
	isIdle      = "completed no transfer"
	isUnknown   = "may have exited"
	isUndecided = "had no consumer that could be found"
)

// compared returns the agents that have enough peers with transfers of a similar size.
func (h *history) compared(i int) map[*track]bool {
	compared := make(map[*track]bool)
	for _, peers := range h.bands(i) {
		for _, p := range peers {
			compared[p.track] = compared[p.track] || len(peers) >= MinPeers
		}
	}
	return compared
}

// checks returns what was looked for, and why that doesn't cover all agents, given the findings. A check that wasn't made
// finds nothing, which doesn't mean that all is well. still says that nothing moves.
func (h *history) checks(found []Finding) (list []Check, still string) {
	last := len(h.at) - 1
	isUntried := fmt.Sprintf("completed fewer than %d operations", FewErrors)
	isFew := fmt.Sprintf("completed fewer than %d transfers in %s", MinTransfers, units.Age(h.windows.Longer))
	isPeerless := fmt.Sprintf("had fewer than %d peers with transfers of a similar size", MinPeers-1)
	isPastless := fmt.Sprintf("had fewer than %d speeds at this size and load before", h.windows.Steps)
	stopped := 0
	known, compared := make(map[string]bool), h.compared(last)
	for _, f := range found {
		for _, a := range f.Agents {
			known[a.ID] = known[a.ID] || slices.Contains([]Kind{Stalled, Failing, SomeFail, Idle}, f.Kind)
		}
		if f.Kind == JobStalled {
			still, stopped = cmp.Or(still, noTransfer(" of "+f.Agents[0].Job.String(), len(f.Agents))), stopped+len(f.Agents)
		}
	}
	running, moving, lacks := 0, 0, make(map[string]int) // numbers of agents, also by what they lack
	for _, t := range h.agents {
		if t.up(last) == No {
			continue
		}
		running++
		d, paces := h.during(t, last, h.windows.Window), h.paces(t, last)
		past := slices.ContainsFunc(paces, func(p pace) bool {
			past, ok := h.past(t, last, p)
			return ok && !past.remembered // what a ring remembers shows a slowdown, but doesn't rule one out
		})
		moving += boolean(d.moved[both].Transfers > 0)
		lacks[isUnknown] += boolean(t.up(last) == Unknown)
		lacks[isUndecided] += boolean(!t.states[last].Store && h.draining(t, last) == Undecided)
		lacks[isUntried] += boolean(d.operations() < FewErrors)
		lacks[isIdle] += boolean(d.moved[both].Transfers == 0 && !known[t.ID])
		lacks[isFew] += boolean(len(paces) == 0 && !known[t.ID])
		lacks[isPeerless] += boolean(len(paces) > 0 && !compared[t])
		lacks[isPastless] += boolean(len(paces) > 0 && !past)
	}
	some := func(reason string) string { // says how many agents lack something
		switch n := lacks[reason]; {
		case n == 0:
			return ""
		case running == 1:
			return "the agent " + reason
		default:
			return fmt.Sprintf("%d of %d agents %s", n, running, reason)
		}
	}
	early := func(needs time.Duration) string {
		if h.at[last].Sub(h.at[0]) >= needs {
			return ""
		}
		return "watched for less than " + units.Age(needs)
	}
	none, idle, soon := "", "", early(h.windows.Silent)
	if running == 0 {
		none = "no agent is running"
	}
	if moving == 0 && len(h.agents) > 0 && soon == "" {
		still = noTransfer("", stopped)
	}
	if lacks[isIdle] == running {
		idle = cmp.Or(none, still)
	}
	few := cmp.Or(idle, some(isFew))
	past := h.windows.Gap + time.Duration(h.windows.Steps-1)*h.windows.Step
	return []Check{
		{"speed compared with peers", []Kind{Straggler}, cmp.Or(few, some(isPeerless))},
		{"speed compared with the past", []Kind{Slower, JobSlower}, cmp.Or(few, early(past), some(isPastless))},
		{"progress", []Kind{Stalled, JobStalled, Idle}, cmp.Or(none, soon, still, some(isIdle))},
		{"errors", []Kind{Failing, SomeFail}, cmp.Or(idle, some(isUntried))},
		{"posting and queues", []Kind{PostBound, SmallBehindLarge}, few},
		{"telemetry", []Kind{EventsLost, RingFull, NearlyFull, NoConsumer, EventsTaken}, cmp.Or(none, some(isUndecided))},
		{"exits and restarts", []Kind{Gone, CrashLoop}, cmp.Or(none, early(CrashWindow), some(isUnknown))},
	}, still
}
