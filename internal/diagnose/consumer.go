// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"math"
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

// undrained returns the findings about the consumers of rings: one for each cause, with all agents that share it.
func (h *history) undrained(i int) (list []Finding) {
	type cause struct {
		kind Kind
		name string // of a consumer that hangs
	}
	causes := make(map[*track]cause)
	var agents []*track
	for _, t := range h.agents {
		who, c := h.draining(t, i), cause{kind: NoConsumer}
		if t.up(i) == No || who == Undecided || who == Drained {
			continue
		}
		if who == Foreign {
			c.kind = EventsTaken
		} else if t.hidden(i) {
			c.kind = RingFull
		}
		if who == Hanging {
			c.name = t.states[i].Ring.Consumer.String()
		}
		agents, causes[t] = append(agents, t), c
	}
	for _, group := range grouped(agents, func(t *track) cause { return causes[t] }) {
		all, c := identities(group), causes[group[0]]
		what := fmt.Sprintf("No process takes the events of %s.", such(all))
		if c.name != "" {
			what = fmt.Sprintf("The consumer of %s takes no events: %s holds the lock.", such(all), c.name)
		}
		switch c.kind {
		case EventsTaken:
			list = append(list, taken(all))
		case RingFull:
			list = append(list, newFinding(RingFull, all, "ring full, unread", what+" Full rings lose all further events.", "nothing changes in a full ring, so what the agent does isn't visible"))
		default:
			soon := math.Inf(1) // seconds until a ring is full
			for _, t := range group {
				r := t.states[i].Ring
				soon = min(soon, float64(r.Capacity-1-r.Peak)*h.windows.Window.Seconds()/h.during(t, i, h.windows.Window).events)
			}
			f := newFinding(NoConsumer, all, "unread", what)
			if limit := time.Duration(math.MaxInt64).Seconds(); soon < limit {
				full := "full in " + units.Age(time.Duration(soon*float64(time.Second)))
				f.Short, f.Evidence = "unread, "+full, []string{"at the current rate, the first ring is " + full}
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
