// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// crashLoops returns the agents that restart, or exit and start, again and again. An agent with stores has another
// one in each life.
func (h *history) crashLoops(i int) (list []Finding) {
	restarts, newest := make(map[Identity]float64), make(map[Identity]Identity) // by identity without ID
	for _, a := range h.agents {
		t, name, exits := h.tracks[a], a, 0
		name.ID = ""
		for n := max(t.first, h.index(i, CrashWindow)) + 1; n <= i; n++ {
			exits += boolean(t.up(n-1) == Yes && t.up(n) == No)
		}
		restarts[name] += max(h.during(t, i, CrashWindow).restarts, float64(exits))
		if other, ok := newest[name]; !ok || h.tracks[other].first < t.first {
			newest[name] = a
		}
	}
	for _, a := range h.agents {
		name := a
		name.ID = ""
		if n := restarts[name]; n >= Restarts && newest[name] == a {
			list = append(list, Finding{
				Kind: CrashLoop, Severity: Warning, Agents: []Identity{a}, Ratio: n, Short: "restarts again and again",
				What:     fmt.Sprintf("%s restarts again and again.", a),
				Evidence: []string{fmt.Sprintf("%.0f restarts or exits in %s", n, units.Age(CrashWindow))},
				Not:      "It isn't a rollout: that restarts an agent once.",
				Next:     "Check the exit code of its process, the events of its pod, and dmesg.",
			})
		}
	}
	return list
}

// memoryGrows returns the agents whose registered memory only grows, long after their start.
func (h *history) memoryGrows(i int) (list []Finding) {
	for _, a := range h.agents {
		t := h.tracks[a]
		if !h.full(t, i, GrowthAfter) {
			continue
		}
		first, last, ok := h.growth(t, i)
		if !ok || last < GrowthTotal*first {
			continue
		}
		list = append(list, Finding{
			Kind: MemoryGrows, Severity: Warning, Agents: []Identity{a}, Ratio: last / first, Short: "memory grows",
			What:     fmt.Sprintf("The registered memory of %s only grows: from %s to %s in %s.", a, size(first), size(last), units.Age(3*GrowthStep)),
			Evidence: []string{"no memory was deregistered"},
			Not:      "It isn't the start of the agent, which registers its memory then.",
			Next:     "Look for a registration in the application that isn't followed by a deregistration.",
		})
	}
	return list
}

// growth returns an agent's registered memory three steps ago and now, if it grew in each step and never decreased.
func (h *history) growth(t *track, i int) (first, last float64, ok bool) {
	for step := 3; step >= 0; step-- {
		s := t.states[h.index(i, time.Duration(step)*GrowthStep)]
		if s == nil || s.Memory == nil {
			return 0, 0, false
		}
		now := float64(*s.Memory)
		if step == 3 {
			first = now
		} else if now <= GrowthEach*last {
			return 0, 0, false
		}
		last = now
	}
	for n := h.index(i, 3*GrowthStep) + 1; n <= i; n++ {
		a, b := t.states[n-1], t.states[n]
		if a == nil || b == nil || a.Memory == nil || b.Memory == nil || *b.Memory < *a.Memory {
			return 0, 0, false
		}
	}
	return first, last, true
}
