// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Check is something that a diagnosis looks for.
type Check struct {
	Name   string `json:"check"`
	Kinds  []Kind `json:"kinds"`           // what it finds
	Reason string `json:"reason"`          // why it doesn't cover all agents; empty if it does
	Still  bool   `json:"still,omitempty"` // no agent completed a transfer
}

// checks returns what was looked for, and which agents that doesn't cover, given the findings. A check that wasn't made finds nothing,
// which doesn't mean that all is well.
func (h *history) checks(found []Finding) []Check {
	c := h.coverage(found)
	var none, still string
	if c.running == 0 {
		none = "no agent is running"
	}
	nothing := c.running > 0 && c.idle == c.running
	if still = none; nothing {
		still = "no agent completed a transfer"
		if c.stopped > 0 {
			still += fmt.Sprintf(", although %s before", counted(c.stopped, "one did", "%d did"))
		}
	}
	few := cmp.Or(still, c.some(c.few, fmt.Sprintf("completed fewer than %d transfers in %s", MinTransfers, units.Age(h.windows.Window))))
	peers := fmt.Sprintf("had fewer than %d peers with transfers of a similar size", MinPeers-1)
	idle := cmp.Or(still, c.some(c.idle, "completed no transfer"))
	list := []Check{
		{Name: "speed compared with peers", Kinds: []Kind{Straggler}, Reason: cmp.Or(few, c.some(c.peerless, peers))},
		{Name: "speed compared with the past", Kinds: []Kind{Slower, JobSlower}, Reason: cmp.Or(few, c.some(c.pastless, "had no speed "+units.Age(h.windows.Gap)+" ago or earlier"))},
		{Name: "progress", Kinds: []Kind{Stalled, JobStalled, Idle}, Reason: idle},
		{Name: "errors", Kinds: []Kind{Failing, SomeFail}, Reason: idle},
		{Name: "post times", Kinds: []Kind{PostBound}, Reason: few},
		{Name: "small transfers behind large ones", Kinds: []Kind{SmallBehindLarge}, Reason: few},
		{Name: "lost events", Kinds: []Kind{EventsLost, RingFull, NearlyFull}, Reason: none},
		{Name: "consumers of rings", Kinds: []Kind{NoConsumer, EventsTaken}, Reason: cmp.Or(none, c.some(c.undecided, "had no consumer that could be found"))},
		{Name: "exits", Kinds: []Kind{Gone}, Reason: cmp.Or(none, c.some(c.unknown, "may have exited"))},
	}
	for i := range list {
		list[i].Still = nothing && list[i].Reason == still
	}
	return list
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
	idle      int // without transfers, unless they are known to hang or to fail
	stopped   int // of these, those that had transfers before
	few       int // with too few transfers for a speed
	peerless  int // with a speed, but too few peers
	pastless  int // with a speed, but without a past
}

func (h *history) coverage(found []Finding) (c coverage) {
	if len(h.at) == 0 {
		return c
	}
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
	for _, a := range h.agents {
		t := h.tracks[a]
		if t.up(last) == No {
			continue
		}
		c.running++
		c.unknown += boolean(t.up(last) == Unknown)
		c.undecided += boolean(!t.states[last].Store && h.draining(t, last) == Undecided)
		if h.moved(t, last, h.windows.Window) == 0 && !known[a] {
			c.idle++
			c.stopped += boolean(t.before() > 0)
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
	return c
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
