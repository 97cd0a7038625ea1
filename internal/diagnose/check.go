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
	Kinds  []Kind `json:"-"`                // what it finds
	Reason string `json:"reason,omitempty"` // why it doesn't cover all agents; empty if it does
}

// NothingMoves is the reason of a check if no agent completed a transfer.
const NothingMoves = "no agent completed a transfer"

// Checks returns what was looked for in some samples, and which agents that doesn't cover. A check that
// wasn't made finds nothing, which doesn't mean that all is well.
func Checks(samples []Sample, rings []Ring, w Windows) []Check {
	var c coverage
	if len(samples) > 0 {
		c = newHistory(samples, w).coverage()
	}
	var none, still string
	if c.running == 0 {
		none = "no agent is running"
	}
	if still = none; still == "" && c.idle == c.running {
		still = NothingMoves
	}
	few := cmp.Or(still, c.some(c.few, fmt.Sprintf("completed fewer than %d transfers in %s", MinTransfers, units.Age(w.Window))))
	peers := fmt.Sprintf("had fewer than %d peers with transfers of a similar size", MinPeers-1)
	return []Check{
		{"speed compared with peers", []Kind{Straggler}, cmp.Or(few, c.some(c.peerless, peers))},
		{"speed compared with the past", []Kind{Slower, JobSlower}, cmp.Or(few, c.some(c.pastless, "had no speed "+units.Age(w.Gap)+" ago or earlier"))},
		{"progress", []Kind{Stalled, JobStalled, Idle}, cmp.Or(still, c.some(c.idle, "completed no transfer"))},
		{"errors", []Kind{Failing}, cmp.Or(still, c.some(c.idle, "completed no transfer"))},
		{"post times", []Kind{PostBound}, few},
		{"small transfers behind large ones", []Kind{SmallBehindLarge}, few},
		{"lost events", []Kind{EventsLost, RingFull, NearlyFull}, none},
		{"consumers of rings", []Kind{NoConsumer, EventsTaken}, cmp.Or(none, c.some(unknownConsumers(rings), "had no consumer that could be found"))},
		{"exits", []Kind{Gone}, cmp.Or(none, c.some(c.unknown, "may have exited"))},
	}
}

// Unjudged returns the checks that don't cover all agents.
func Unjudged(checks []Check) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Reason == "" })
}

// coverage is the numbers of agents that can't be judged.
type coverage struct {
	running  int // all agents that haven't exited
	unknown  int // that may have exited
	idle     int // without transfers, unless they are known to hang or to fail
	few      int // with too few transfers for a speed
	peerless int // with a speed, but too few peers
	pastless int // with a speed, but without a past
}

func (h *history) coverage() (c coverage) {
	last := len(h.at) - 1
	compared := make(map[Agent]bool)
	for _, peers := range h.bands(last) {
		for _, p := range peers {
			compared[p.agent] = compared[p.agent] || len(peers) >= MinPeers
		}
	}
	known := make(map[Agent]bool)
	for _, f := range append(h.stalls(last), h.failing(last)...) {
		for _, a := range f.Agents {
			known[a] = true
		}
	}
	for _, a := range h.agents {
		t := h.tracks[a]
		if t.up(last) == No {
			continue
		}
		c.running++
		c.unknown += boolean(t.up(last) == Unknown)
		c.idle += boolean(h.moved(t, last, h.windows.Window) == 0 && !known[a])
		if _, ok := h.pace(t, last); !ok {
			c.few++
			continue
		}
		_, ok := h.past(t, last)
		c.peerless += boolean(!compared[a])
		c.pastless += boolean(!ok)
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

// unknownConsumers returns the number of rings whose consumer is unknown.
func unknownConsumers(rings []Ring) (n int) {
	for i := range rings {
		n += boolean(rings[i].Up != No && rings[i].Consumer == UnknownConsumer && !rings[i].Store)
	}
	return n
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
