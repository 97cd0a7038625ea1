// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

// gone returns the jobs with agents that have transferred and then exited, although others of the job still transfer.
func (h *history) gone(i int) (list []Finding) {
	active, exited := make(map[Job]bool), make(map[Job][]Identity)
	for _, a := range h.agents {
		switch t := h.tracks[a]; {
		case t.up(i) != No:
			active[a.Job] = active[a.Job] || h.moved(t, i, h.windows.Window) > 0
		case t.exited(i) && h.moved(t, i, h.windows.Before) > 0:
			exited[a.Job] = append(exited[a.Job], a)
		}
	}
	for _, a := range h.agents {
		if agents := exited[a.Job]; len(agents) > 0 && agents[0] == a && active[a.Job] {
			list = append(list, exits(agents, h.windows.Before))
		}
	}
	return list
}

// exited reports whether the agent had exited when it was last seen. An agent that disappeared for
// another reason may still run.
func (t *track) exited(i int) bool {
	for ; i >= t.first; i-- {
		if t.states[i] != nil {
			return t.states[i].Up == No
		}
	}
	return false
}
