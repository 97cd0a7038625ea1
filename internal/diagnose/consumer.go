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
		name string // of the consumer
	}
	agents := make(map[cause][]Identity)
	soon := make(map[cause]time.Duration)
	var causes []cause
	for _, a := range h.agents {
		t := h.tracks[a]
		who := h.draining(t, i)
		if t.up(i) == No || who != Foreign && who != Nobody && who != Hanging {
			continue
		}
		c := cause{kind: NoConsumer}
		if who == Hanging {
			c.name = t.states[i].Ring.Consumer.String()
		}
		full := h.fullIn(t, i)
		switch {
		case who == Foreign:
			c.kind = EventsTaken
		case full == 0:
			c.kind = RingFull
		}
		if agents[c] == nil {
			causes = append(causes, c)
		}
		agents[c] = append(agents[c], a)
		if full > 0 && (soon[c] == 0 || full < soon[c]) {
			soon[c] = full
		}
	}
	for _, c := range causes {
		switch c.kind {
		case EventsTaken:
			list = append(list, taken(agents[c], 0))
		case RingFull:
			list = append(list, full(agents[c], c.name))
		default:
			list = append(list, unread(agents[c], c.name, soon[c]))
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

// whoDrains says why nobody takes events.
func whoDrains(hanging string) string {
	if hanging != "" {
		return "its consumer " + hanging + " takes no events"
	}
	return "no process takes its events"
}

const startCollector = "Start a Collector with the receiver nixl_shm, or check why it doesn't drain this ring: its log names the rings that it refuses."

func full(agents []Identity, hanging string) Finding {
	return Finding{
		Kind: RingFull, Severity: Warning, Agents: agents, Short: "ring full, unread", job: len(agents) > 1,
		What:     fmt.Sprintf("%s full: %s.", ringsOf(agents, "is", "are"), whoDrains(hanging)),
		Evidence: []string{"nothing changes in a full ring, so what the agent does isn't visible"},
		Not:      "Transfers aren't affected, but all further events are lost.",
		Next:     startCollector,
	}
}

func unread(agents []Identity, hanging string, soon time.Duration) Finding {
	f := Finding{
		Kind: NoConsumer, Severity: Warning, Agents: agents, Short: "unread", job: len(agents) > 1,
		What:     fmt.Sprintf("%s drained: %s.", ringsOf(agents, "isn't", "aren't"), whoDrains(hanging)),
		Evidence: []string{},
		Not:      "Nothing is lost yet.",
		Next:     startCollector,
	}
	if soon > 0 {
		f.Short = "unread, full in " + units.Age(soon)
		f.Evidence = append(f.Evidence, "at the current rate, the first ring is full in "+units.Age(soon))
	}
	return f
}

// ringsOf names the rings of some agents, with a verb.
func ringsOf(agents []Identity, one, more string) string {
	if len(agents) == 1 {
		return fmt.Sprintf("The ring of %s %s", agents[0], one)
	}
	return fmt.Sprintf("The rings of %d agents, such as %s, %s", len(agents), agents[0], more)
}
