// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// losses returns the agents whose telemetry is, or may soon be, incomplete.
func (h *history) losses(i int) (list []Finding) {
	var robbed []Identity
	reads := 0.0
	for _, t := range h.agents {
		d := h.during(t, i, h.windows.Long)
		if d.lost > 0 {
			n := units.Count(uint64(d.lost))
			list = append(list, newFinding(EventsLost, []Identity{t.Identity}, "events lost: "+n,
				fmt.Sprintf("Telemetry of %s is incomplete: its totals are too low.", t.Identity), "a full ring, dropped events or torn transfers: "+n))
		}
		if d.foreign > 0 {
			robbed, reads = append(robbed, t.Identity), reads+d.foreign
		}
		if s := t.states[i]; s != nil && s.Up != No && d.lost == 0 && h.leastFill(t, i) > FullShare {
			f := newFinding(NearlyFull, []Identity{t.Identity}, "ring "+percent(s.Fill())+" full",
				fmt.Sprintf("The ring of %s is %s full. A slightly larger burst loses events.", t.Identity, percent(s.Fill())))
			f.Ratio = s.Fill()
			list = append(list, f)
		}
	}
	if len(robbed) > 0 {
		list = append(list, taken(robbed, fmt.Sprintf("times that events were gone: %s", units.Count(uint64(reads)))))
	}
	return list
}

// leastFill returns the lowest fill of an agent's ring in the long window.
func (h *history) leastFill(t *track, i int) float64 {
	least := 1.0
	for n := h.index(i, h.windows.Long); n <= i; n++ {
		if s := t.states[n]; s != nil {
			least = min(least, s.Fill())
		}
	}
	return least
}

func taken(agents []Identity, evidence ...string) Finding {
	return newFinding(EventsTaken, agents, "events taken", fmt.Sprintf("Another process consumes the telemetry of %s.", such(agents)), evidence...)
}

// such names an agent, or one of several.
func such(agents []Identity) string {
	if len(agents) == 1 {
		return agents[0].String()
	}
	return fmt.Sprintf("%d agents, such as %s", len(agents), agents[0])
}
