// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Draining is who takes the events of a ring, as an observer sees it.
type Draining uint8

// The values of [Draining].
const (
	Undecided Draining = iota // the ring was empty all the time, or the watch is too short
	Drained                   // a consumer of this project holds its lock
	Hanging                   // likewise, but it takes no events
	Foreign                   // a program that doesn't lock the ring
	Nobody                    // events stay in the ring
)

// draining returns who takes events from an agent's ring.
func (h *history) draining(t *track, i int) Draining {
	a := t.states[i]
	if a == nil || a.Ring == nil || a.Ring.ConsumerUnknown {
		return Undecided
	}
	early := h.at[i].Sub(h.at[t.first]) < h.windows.Window/2 // a consumer may still be starting
	took, locked, left := h.during(t, i, h.windows.Window).taken > 0, a.Ring.Consumer != nil, a.Ring.Peak > 0
	switch {
	case locked && (early || took || !left):
		return Drained
	case early && !took:
		return Undecided
	case locked:
		return Hanging
	case took:
		return Foreign
	case left:
		return Nobody
	default:
		return Undecided
	}
}

// fullIn returns after what time a ring that nobody drains is full; 0 if it is full, and -1 if it doesn't fill.
func (h *history) fullIn(t *track, i int) time.Duration {
	r := t.states[i].Ring
	room, rate := float64(max(r.Capacity-1, 0)-r.Peak), h.during(t, i, h.windows.Window).events/h.windows.Window.Seconds()
	switch {
	case room <= 0:
		return 0
	case rate <= 0:
		return -1
	}
	return max(1, time.Duration(room/rate*float64(time.Second)))
}

// undrained returns the findings about the consumers of rings: one for each cause, with all agents that share it.
func (h *history) undrained(i int) (list []Finding) {
	type cause struct {
		kind Kind
		why  string
	}
	causes := make(map[*track]cause)
	var agents []*track
	for _, t := range h.agents {
		c := cause{NoConsumer, "no process takes its events"}
		switch who := h.draining(t, i); {
		case t.up(i) == No || who == Undecided || who == Drained:
			continue
		case who == Foreign:
			c = cause{kind: EventsTaken}
		case who == Hanging:
			c.why = "its consumer " + t.states[i].Ring.Consumer.String() + " takes no events"
		}
		if c.kind == NoConsumer && h.fullIn(t, i) == 0 {
			c.kind = RingFull
		}
		agents, causes[t] = append(agents, t), c
	}
	for _, group := range grouped(agents, func(t *track) cause { return causes[t] }) {
		all, c := identities(group), causes[group[0]]
		switch c.kind {
		case EventsTaken:
			list = append(list, taken(all))
		case RingFull:
			list = append(list, newFinding(RingFull, all, "ring full, unread", fmt.Sprintf("%s full: %s.", ringsOf(all, "is", "are"), c.why),
				"nothing changes in a full ring, so what the agent does isn't visible"))
		default:
			f := newFinding(NoConsumer, all, "unread", fmt.Sprintf("%s drained: %s.", ringsOf(all, "isn't", "aren't"), c.why))
			soon := time.Duration(-1)
			for _, t := range group {
				if full := h.fullIn(t, i); full > 0 && (soon < 0 || full < soon) {
					soon = full
				}
			}
			if soon > 0 {
				f.Short += ", full in " + units.Age(soon)
				f.Evidence = append(f.Evidence, "at the current rate, the first ring is full in "+units.Age(soon))
			}
			list = append(list, f)
		}
	}
	return list
}

// explain adds findings about consumers to others. They explain why events are lost, so findings that they
// explain are removed.
func explain(list, consumers []Finding) []Finding {
	explained := make(map[string]Kind)
	for i := range consumers {
		for _, a := range consumers[i].Agents {
			explained[a.ID] = consumers[i].Kind
		}
	}
	for i := range list {
		why, ok := explained[list[i].Agents[0].ID]
		switch k := list[i].Kind; {
		case ok && why == EventsTaken && k == EventsTaken:
		case ok && why != EventsTaken && (k == EventsLost || k == NearlyFull):
		default:
			consumers = append(consumers, list[i])
		}
	}
	return consumers
}

// ringsOf names the rings of some agents, with a verb.
func ringsOf(agents []Identity, one, more string) string {
	if len(agents) == 1 {
		return fmt.Sprintf("The ring of %s %s", agents[0], one)
	}
	return fmt.Sprintf("The rings of %d agents, such as %s, %s", len(agents), agents[0], more)
}
