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

// checks returns what was looked for, and which agents that doesn't cover, given the findings. A check that wasn't made finds nothing,
// which doesn't mean that all is well.
func (h *history) checks(c *coverage) []Check {
	none := ""
	if c.running == 0 {
		none = "no agent is running"
	}
	still := ""
	if c.idle == c.running {
		still = cmp.Or(none, c.still)
	}
	few := cmp.Or(still, c.some(c.few, fmt.Sprintf("completed fewer than %d transfers in %s", MinTransfers, units.Age(h.windows.Window))))
	peers := c.some(c.peerless, fmt.Sprintf("had fewer than %d peers with transfers of a similar size", MinPeers-1))
	past := c.some(c.pastless, "had no speed "+units.Age(h.windows.Gap)+" ago or earlier")
	return []Check{
		{"speed compared with peers", []Kind{Straggler}, cmp.Or(few, peers)},
		{"speed compared with the past", []Kind{Slower, JobSlower}, cmp.Or(few, past)},
		{"progress", []Kind{Stalled, JobStalled, Idle}, cmp.Or(none, c.still, c.some(c.idle, "completed no transfer"))},
		{"errors", []Kind{Failing, SomeFail}, cmp.Or(still, c.some(c.untried, "completed no operation"))},
		{"post times", []Kind{PostBound}, few},
		{"small transfers behind large ones", []Kind{SmallBehindLarge}, few},
		{"lost events", []Kind{EventsLost, RingFull, NearlyFull}, none},
		{"consumers of rings", []Kind{NoConsumer, EventsTaken}, cmp.Or(none, c.some(c.undecided, "had no consumer that could be found"))},
		{"exits and restarts", []Kind{Gone, CrashLoop}, cmp.Or(none, h.early(CrashWindow), c.some(c.unknown, "may have exited"))},
		{"registered memory", []Kind{MemoryGrows}, cmp.Or(none, h.early(GrowthAfter), c.some(c.forgotten, "registered memory before the watch"))},
	}
}

// early says that the watch is shorter than a check requires.
func (h *history) early(needs time.Duration) string {
	if last := len(h.at) - 1; last >= 0 && h.at[last].Sub(h.at[0]) >= needs {
		return ""
	}
	return "watched for less than " + units.Age(needs)
}

// Unjudged returns the checks that don't cover all agents.
func Unjudged(checks []Check) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Reason == "" })
}

// coverage is the numbers of agents that can't be judged.
type coverage struct {
	running   int // all agents that haven't exited
	unknown   int // that may have exited
	undecided int // whose consumer is unknown
	forgotten int // whose registered memory is unknown
	idle      int // without transfers, unless they are known to hang or to fail
	untried   int // without transfers and errors
	few       int // with too few transfers for a speed
	peerless  int // with a speed, but too few peers
	pastless  int // with a speed, but without a past

	still string // see Result
}

func (h *history) coverage(found []Finding) *coverage {
	c := &coverage{}
	last := len(h.at) - 1
	compared := make(map[Identity]bool)
	for _, peers := range h.bands(last) {
		for _, p := range peers {
			compared[p.agent] = compared[p.agent] || len(peers) >= MinPeers
		}
	}
	known := make(map[Identity]bool)
	for i := range found {
		switch found[i].Kind {
		case Stalled, JobStalled, Failing, SomeFail, Idle:
			for _, a := range found[i].Agents {
				known[a] = true
			}
		}
	}
	moves, before := make(map[Job]bool), make(map[Job]int)
	for _, a := range h.agents {
		t := h.tracks[a]
		if t.up(last) == No {
			continue
		}
		c.running++
		c.unknown += boolean(t.up(last) == Unknown)
		c.undecided += boolean(!t.states[last].Store && h.draining(t, last) == Undecided)
		c.forgotten += boolean(t.states[last].Memory == nil)
		d := h.during(t, last, h.windows.Window)
		c.untried += boolean(d.operations() == 0)
		if d.moved[both].transfers > 0 {
			moves[a.Job] = true
		} else {
			c.idle += boolean(!known[a])
			before[a.Job] += boolean(t.before() > 0 || t.lastMove(last, both) > 0)
		}
		paces := h.paces(t, last)
		if len(paces) == 0 {
			c.few += boolean(!known[a])
			continue
		}
		past := slices.ContainsFunc(paces, func(p pace) bool {
			past, ok := h.past(t, last, p.way)
			return ok && !past.remembered // what a ring remembers shows a slowdown, but doesn't rule one out
		})
		c.peerless += boolean(!compared[a])
		c.pastless += boolean(!past)
	}
	c.still = h.still(moves, before)
	return c
}

// still says that no agent moves data, or none of a job that did before, given the jobs that do and the numbers of agents
// that did before.
func (h *history) still(moves map[Job]bool, before map[Job]int) string {
	for _, a := range h.agents {
		n, who := before[a.Job], " of "+a.Job.String()
		if len(moves) == 0 {
			n, who = 0, ""
			for _, agents := range before {
				n += agents
			}
		}
		switch {
		case n > 0 && !moves[a.Job]:
			return fmt.Sprintf("no agent%s completed a transfer, although %s before", who, counted(n, "one did", "%d did"))
		case len(moves) == 0:
			return "no agent completed a transfer"
		}
	}
	return ""
}

// some says how many agents a reason is about, if any.
func (c *coverage) some(n int, reason string) string {
	switch {
	case n == 0:
		return ""
	case c.running == 1:
		return "the agent " + reason
	default:
		return fmt.Sprintf("%d of %d agents %s", n, c.running, reason)
	}
}

// counted returns a text for one, or for more.
func counted(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(more, n)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
