// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Consumer is who takes events from a ring.
type Consumer uint8

// The consumers.
const (
	UnknownConsumer Consumer = iota
	Drained                  // a consumer of this project
	Hanging                  // a consumer of this project that takes no events
	Foreign                  // another program
	Nobody                   // events stay in the ring
)

// Ring is the state of an agent's ring.
type Ring struct {
	Agent
	Up       Up
	Store    bool // the agent has a store instead of a ring
	Consumer Consumer
	Name     string // of the consumer; may be empty
	Full     bool
	FullIn   time.Duration // until the ring is full at the current rate; 0 if it is full or idle
}

// Rings returns the findings about the consumers of rings: one for each cause, with all agents that share it.
func Rings(rings []Ring) (list []Finding) {
	type cause struct {
		kind Kind
		name string // of the consumer
	}
	groups := make(map[cause][]*Ring)
	var causes []cause
	for i := range rings {
		r := &rings[i]
		c := cause{NoConsumer, r.Name}
		switch {
		case r.Up == No:
			continue
		case r.Consumer == Foreign:
			c.kind = EventsTaken
		case r.Consumer != Nobody && r.Consumer != Hanging:
			continue
		case r.Full:
			c.kind = RingFull
		}
		if groups[c] == nil {
			causes = append(causes, c)
		}
		groups[c] = append(groups[c], r)
	}
	for _, c := range causes {
		group := groups[c]
		agents := make([]Agent, len(group))
		for i, r := range group {
			agents[i] = r.Agent
		}
		switch c.kind {
		case EventsTaken:
			list = append(list, taken(agents, 0))
		case RingFull:
			list = append(list, full(agents, group[0]))
		default:
			list = append(list, unread(agents, group))
		}
	}
	return list
}

// AddRings adds the findings about the consumers of rings to others. They explain why events are
// lost, so findings that they explain are removed.
func AddRings(list []Finding, rings []Ring) []Finding {
	found := Rings(rings)
	explained := make(map[Agent]Kind)
	for i := range found {
		for _, a := range found[i].Agents {
			explained[a] = found[i].Kind
		}
	}
	for i := range list {
		why, ok := explained[list[i].Agents[0]]
		switch k := list[i].Kind; {
		case ok && why == EventsTaken && k == EventsTaken:
		case ok && why != EventsTaken && (k == EventsLost || k == NearlyFull):
		default:
			found = append(found, list[i])
		}
	}
	Sort(found)
	return found
}

// who says why nobody takes events.
func (r *Ring) who() string {
	if r.Consumer == Hanging {
		return "its consumer " + r.Name + " takes no events"
	}
	return "no process takes its events"
}

const startCollector = "Start a Collector with the receiver nixl_shm, or check why it doesn't drain this ring: its log names the rings that it refuses."

func full(agents []Agent, r *Ring) Finding {
	return Finding{
		Kind: RingFull, Severity: Warning, Agents: agents, Short: "ring full, unread", job: len(agents) > 1,
		What:     fmt.Sprintf("%s full: %s.", ringsOf(agents, "is", "are"), r.who()),
		Evidence: []string{"nothing changes in a full ring, so what the agent does isn't visible"},
		Not:      "Transfers aren't affected, but all further events are lost.",
		Next:     startCollector,
	}
}

func unread(agents []Agent, group []*Ring) Finding {
	f := Finding{
		Kind: NoConsumer, Severity: Warning, Agents: agents, Short: "unread", job: len(agents) > 1,
		What:     fmt.Sprintf("%s drained: %s.", ringsOf(agents, "isn't", "aren't"), group[0].who()),
		Evidence: []string{},
		Not:      "Nothing is lost yet.",
		Next:     startCollector,
	}
	soon := time.Duration(0)
	for _, r := range group {
		if r.FullIn > 0 && (soon == 0 || r.FullIn < soon) {
			soon = r.FullIn
		}
	}
	if soon > 0 {
		f.Short = "unread, full in " + units.Age(soon)
		f.Evidence = append(f.Evidence, "at the current rate, the first ring is full in "+units.Age(soon))
	}
	return f
}

// ringsOf names the rings of some agents, with a verb.
func ringsOf(agents []Agent, one, more string) string {
	if len(agents) == 1 {
		return fmt.Sprintf("The ring of %s %s", agents[0], one)
	}
	return fmt.Sprintf("The rings of %d agents, such as %s, %s", len(agents), agents[0], more)
}

// Process is a process that uses NIXL.
type Process struct {
	PID       int
	Command   string
	Telemetry bool   // it has a ring or a store, or is about to create one
	Enable    string // the value of NIXL_TELEMETRY_ENABLE; empty if it isn't set
}

// Processes returns the findings about processes that use NIXL without telemetry. Processes of the same
// program are one finding.
func Processes(list []Process) (found []Finding) {
	type group struct {
		command  string
		disabled bool
	}
	pids := make(map[group][]int)
	var order []group
	values := make(map[group]string)
	for _, p := range list {
		if p.Telemetry {
			continue
		}
		g := group{p.Command, p.Enable != ""}
		if pids[g] == nil {
			order = append(order, g)
		}
		pids[g], values[g] = append(pids[g], p.PID), p.Enable
	}
	for _, g := range order {
		if g.disabled {
			found = append(found, disabled(g.command, values[g], pids[g]))
		} else {
			found = append(found, silent(g.command, pids[g]))
		}
	}
	return found
}

func disabled(command, value string, pids []int) Finding {
	return Finding{
		Kind: TelemetryDisabled, Severity: Warning, Agents: []Agent{},
		Short:    "NIXL_TELEMETRY_ENABLE=" + value,
		What:     fmt.Sprintf("%s uses NIXL with NIXL_TELEMETRY_ENABLE=%s, which breaks vLLM.", processes(command, pids), value),
		Evidence: []string{"vLLM asks its agents for telemetry. NIXL 1.3.1 and later let the variable override that, and vLLM then discards finished transfers"},
		Not:      "It isn't the same as leaving the variable unset: then vLLM works, without telemetry.",
		Next:     "Unset NIXL_TELEMETRY_ENABLE, or set it to y. Never set it to n. Dynamo's operator sets it by default: override it in the pod's environment.",
	}
}

func silent(command string, pids []int) Finding {
	return Finding{
		Kind: NoTelemetry, Severity: Info, Agents: []Agent{},
		Short:    "no telemetry",
		What:     fmt.Sprintf("%s uses NIXL without telemetry.", processes(command, pids)),
		Evidence: []string{"it has libnixl mapped, but no ring and no store"},
		Not:      "It needn't be a problem: the process may load NIXL without creating an agent.",
		Next:     "To see its transfers, start it with NIXL_TELEMETRY_ENABLE=y, NIXL_TELEMETRY_EXPORTER=BUFFER and NIXL_TELEMETRY_DIR.",
	}
}

// processes names a process, or several of one program.
func processes(command string, pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("%s (process %d)", command, pids[0])
	}
	return fmt.Sprintf("%s (%d processes, such as %d)", command, len(pids), pids[0])
}
