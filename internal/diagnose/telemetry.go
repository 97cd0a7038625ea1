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

// telemetry returns what makes telemetry incomplete, or soon may. Agents of a host whose rings have the same problem of consumers
// share a finding, which explains why their events are lost.
func (h *history) telemetry(i int) (list []Finding) {
	type cause struct {
		kind          Kind
		cluster, host string
		name          string // of a consumer that hangs
	}
	causes := make(map[*track]cause)
	var agents []*track
	for _, t := range h.agents {
		d, who, c := h.during(t, i, h.windows.Long), h.draining(t, i), cause{kind: NoConsumer, cluster: t.Cluster, host: t.Host}
		running := t.up(i) != No
		taken, undrained := d.foreign > 0 || running && who == Foreign, running && (who == Nobody || who == Hanging)
		switch {
		case taken:
			c.kind = EventsTaken
		case t.hidden(i):
			c.kind = RingFull
		}
		if who == Hanging {
			c.name = t.states[i].Ring.Consumer.String()
		}
		if taken || undrained {
			agents, causes[t] = append(agents, t), c
		}
		switch fill := h.leastFill(t, i); {
		case undrained:
		case d.lost > 0:
			n := units.Count(uint64(d.lost))
			list = append(list, newFinding(EventsLost, []Identity{t.Identity}, "events lost: "+n,
				fmt.Sprintf("Telemetry of %s is incomplete: its totals are too low.", t.Identity), "a full ring, dropped events or torn transfers: "+n))
		case running && fill > FullShare:
			f := newFinding(NearlyFull, []Identity{t.Identity}, "ring "+percent(fill)+" full",
				fmt.Sprintf("The ring of %s fills to at least %s, again and again. A slightly larger burst loses events.", t.Identity, percent(fill)))
			f.Ratio = fill
			list = append(list, f)
		}
	}
	for _, group := range grouped(agents, func(t *track) cause { return causes[t] }) {
		list = append(list, h.undrained(group, i, causes[group[0]].kind, causes[group[0]].name))
	}
	return list
}

// undrained returns the finding about rings with a problem of consumers.
func (h *history) undrained(group []*track, i int, kind Kind, name string) Finding {
	all, reads, soon := identities(group), 0.0, math.Inf(1) // seconds until a ring is full
	for _, t := range group {
		reads += h.during(t, i, h.windows.Long).foreign
		if r := t.states[i]; r != nil && r.Ring != nil {
			d := h.during(t, i, h.windows.Window)
			soon = min(soon, float64(r.Ring.Capacity-1-r.Ring.Peak)*d.seconds/d.events)
		}
	}
	what := fmt.Sprintf("No process takes the events of %s.", such(all))
	if name != "" {
		what = fmt.Sprintf("The consumer (%s) holds the lock, but takes no events of %s.", name, such(all))
	}
	limit := time.Duration(math.MaxInt64).Seconds()
	switch {
	case kind == EventsTaken:
		f := newFinding(EventsTaken, all, "events taken", fmt.Sprintf("Another process consumes the telemetry of %s.", such(all)))
		if reads > 0 {
			f.Evidence = append(f.Evidence, "number of times that events were gone: "+units.Count(uint64(reads)))
		}
		return f
	case kind == RingFull:
		return newFinding(RingFull, all, "ring full, unread", what+" Full rings lose all further events.", "nothing changes in a full ring, so what the agent does isn't visible")
	case soon < limit:
		full := "full in " + units.Age(time.Duration(soon*float64(time.Second)))
		return newFinding(NoConsumer, all, "unread, "+full, what, "at the current rate, the first ring is "+full)
	}
	return newFinding(NoConsumer, all, "unread", what)
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

// such names an agent, or one of several.
func such(agents []Identity) string {
	if len(agents) == 1 {
		return agents[0].String()
	}
	return fmt.Sprintf("%d agents, such as %s", len(agents), agents[0])
}
