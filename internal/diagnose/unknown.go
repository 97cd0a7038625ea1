// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// unknown returns a finding about the agents that report events of unknown types.
func (h *history) unknown(i int) []Finding {
	var agents []*track
	events := make(map[string]uint64)
	for _, t := range h.agents {
		if a := t.states[i]; a != nil && len(a.Unknown) > 0 {
			agents = append(agents, t)
			for name, n := range a.Unknown {
				events[name] += n
			}
		}
	}
	if len(agents) == 0 {
		return nil
	}
	const most = 5
	var names []string
	for _, name := range slices.Sorted(maps.Keys(events)) {
		names = append(names, fmt.Sprintf("%s (%s)", units.Printable(name), units.Count(events[name])))
	}
	return []Finding{newFinding(EventsUnknown, identities(agents), "unknown events",
		fmt.Sprintf("This version doesn't know the types of some events of %s.", such(identities(agents))),
		"types, and how often they occurred: "+strings.Join(names[:min(len(names), most)], ", "))}
}
