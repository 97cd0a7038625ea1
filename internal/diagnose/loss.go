// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

// losses returns the agents whose telemetry is, or may soon be, incomplete.
func (h *history) losses(i int) (list []Finding) {
	var robbed []Agent
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
		if r := t.readings[i]; r != nil && r.Up != No && d.lost == 0 && h.leastFill(t, i) > FullShare {
			list = append(list, nearlyFull(a, r.Fill))
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
		if t.readings[n] != nil {
			least = min(least, t.readings[n].Fill)
		}
	}
	return least
}
