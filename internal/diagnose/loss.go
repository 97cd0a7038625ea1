// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

// losses returns the agents whose telemetry is, or may soon be, incomplete.
func (h *history) losses(i int) (list []Finding) {
	var robbed []Identity
	reads := 0.0
	for _, a := range h.agents {
		t := h.tracks[a]
		d := h.during(t, i, h.windows.Long)
		if d.lost > 0 {
			list = append(list, lost(a, d.lost))
		}
		if d.foreign > 0 {
			robbed, reads = append(robbed, a), reads+d.foreign
		}
		if s := t.states[i]; s != nil && s.Up != No && d.lost == 0 && h.leastFill(t, i) > FullShare {
			list = append(list, nearlyFull(a, s.Fill()))
		}
	}
	if len(robbed) > 0 {
		list = append(list, taken(robbed, reads))
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
