// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Check is what a diagnosis compared, whether or not it found something.
type Check struct {
	Name  string `json:"check"`
	Kinds []Kind `json:"kinds"` // what it finds
	Well  bool   `json:"well"`  // it covers all running agents, and nothing about them is unusual
	What  string `json:"what"`  // says for how many agents it was made, and how far they are from a limit
}

// Headline says in a few words what was found, if that isn't a problem: nothing is only found if everything was compared.
func Headline(found []Finding, checks []Check, still string) string {
	switch {
	case len(checks) == 0:
		return "No data"
	case still != "":
		return "Nothing moves: " + still
	case len(found) > 0:
		return "No problem found, but something to know"
	case slices.ContainsFunc(checks, func(c Check) bool { return !c.Well }):
		return "No problem found in what could be compared"
	}
	return "Nothing found"
}

// checks returns what was compared, given the findings. still says that nothing moves.
func (h *history) checks(found []Finding) (list []Check, still string) {
	i, running := len(h.at)-1, slices.DeleteFunc(slices.Clone(h.agents), func(t *track) bool { return t.up(len(h.at)-1) == No })
	add := func(name string, well bool, what string, kinds ...Kind) {
		if len(running) == 0 {
			well, what = false, "no agent is running"
		}
		well = well && !slices.ContainsFunc(found, func(f Finding) bool { return slices.Contains(kinds, f.Kind) })
		list = append(list, Check{name, kinds, well, what})
	}
	peers, peersWell := h.comparedWithPeers(i, running)
	past, pastWell := h.comparedWithPast(i, running)
	c := h.count(i, running)
	all := func(n int) bool { return n == len(running) }
	add("speed compared with peers", peersWell, peers, Straggler)
	add("speed compared with the past", pastWell, past, Slower, JobSlower)
	moving := fmt.Sprintf("%s completed transfers in %s, %s per second", of(c.moving, running), c.window, units.Rate(c.rate))
	if path, _ := h.path(i); path != "" {
		moving += "; " + path
	}
	add("progress", all(c.moving), unless(c.moving, "no agent completed a transfer in "+c.window, "%s", moving), Stalled, JobStalled, Idle, NotRDMA)
	add("errors", all(c.tried) && c.canceled <= ErrorShare, unless(c.tried, fmt.Sprintf("no agent ended %d operations in %s", FewErrors, c.window),
		"of the operations of %s, at most %s failed and %s were canceled", of(c.tried, running), percent(c.failed), percent(c.canceled)), Failing, SomeFail)
	add("posting and queues", all(c.paced), unless(c.paced, fmt.Sprintf("no agent completed %d transfers in %s", MinTransfers, units.Age(h.windows.Longer)),
		"posting takes at most %s of the transfer time of %s", percent(c.post), of(c.paced, running)), PostBound)
	nobody := "no consumer of a ring was found"
	if c.unknown > 0 {
		nobody = fmt.Sprintf("who consumes the rings isn't known; they are at most %s full", percent(c.fill))
	}
	add("telemetry", all(c.drained), unless(c.drained, nobody, "a consumer was found for %s; rings are at most %s full", of(c.drained, running), percent(c.fill)),
		EventsLost, RingFull, NearlyFull, NoConsumer, EventsTaken, EventsUnknown)
	loops := ", no crash loop"
	if slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == CrashLoop }) {
		loops = ""
	}
	add("exits and restarts", all(c.up), unless(c.up, "it isn't known whether the agents are still running", "%s running%s", of(c.up, running), loops), Gone, Missing, CrashLoop)
	stopped := 0
	for _, f := range found {
		if f.Kind == JobStalled {
			stopped += len(f.Agents)
		}
	}
	if c.moving == 0 && len(h.agents) > 0 && h.at[i].Sub(h.at[0]) >= h.windows.Silent {
		still = noTransfer("", both.noun(), stopped)
	}
	return list, still
}

// unless formats what is known about some agents, or returns what to say if there are none.
func unless(n int, none, format string, args ...any) string {
	if n == 0 {
		return none
	}
	return fmt.Sprintf(format, args...)
}

// of says how many of the running agents something is about.
func of(n int, running []*track) string {
	if n == len(running) {
		return counted(n, "1 agent", "%d agents")
	}
	return fmt.Sprintf("%d of %d agents", n, len(running))
}

// counts says how many agents have what a check needs, and how far they are from its limits.
type counts struct {
	moving, tried, paced, drained, up  int
	unknown                            int // consumers
	rate, failed, canceled, post, fill float64
	window                             string
}

func (h *history) count(i int, running []*track) (c counts) {
	c.window = units.Age(h.windows.Window)
	for _, t := range running {
		d := h.during(t, i, h.windows.Window)
		c.moving += boolean(d.moved[both].Transfers > 0)
		c.rate += h.rate(t, i, h.windows.Window, both)
		if n := d.operations() + d.canceled; n >= FewErrors {
			c.tried++
			c.failed, c.canceled = max(c.failed, d.failed/n), max(c.canceled, d.canceled/n)
		}
		if p, ok := h.pace(t, i, both); ok {
			c.paced++
			c.post = max(c.post, p.post/p.time)
		}
		c.drained += boolean(t.states[i].Store || h.draining(t, i) == Drained)
		c.unknown += boolean(t.states[i].Ring != nil && t.states[i].Ring.ConsumerUnknown)
		c.fill = max(c.fill, t.states[i].Fill())
		c.up += boolean(t.up(i) == Yes)
	}
	return c
}

// comparedWithPeers says how many agents have enough peers, and how far apart these are.
func (h *history) comparedWithPeers(i int, running []*track) (what string, well bool) {
	compared, lowest, far := make(map[*track][3]bool), math.Inf(1), []peer(nil) // compared has the directions
	for _, peers := range h.bands(i) {
		if len(peers) < MinPeers {
			continue
		}
		usual, _ := slowPeers(peers)
		for _, p := range peers {
			ways := compared[p.track]
			ways[p.way] = true
			compared[p.track] = ways
			if r := p.speed / usual.speed; r < lowest {
				lowest, far = r, peers
			}
		}
	}
	if len(compared) == 0 {
		return fmt.Sprintf("no agent had %d peers with %d transfers of a similar size in %s", MinPeers-1, MinTransfers, units.Age(h.windows.Longer)), false
	}
	what = fmt.Sprintf("%s compared, the slowest at %s of its peers' speed", of(len(compared), running), percent(lowest))
	if lowest < StragglerSpeed {
		what += ": " + groups(far)
	}
	part := 0 // agents with too few transfers in one direction
	for t, ways := range compared {
		for _, w := range []way{writes, reads} {
			used := h.rate(t, i, h.windows.Longer, w) > 0 || t.remembered(w).Transfers >= Regularly
			part += boolean(used && !ways[w] && !ways[both])
		}
	}
	if part > 0 {
		what += fmt.Sprintf("; %s in one direction only", counted(part, "1 agent", "%d agents"))
	}
	return what, len(compared) == len(running) && lowest >= StragglerSpeed && part == 0
}

// groups describes peers whose speeds are far apart.
func groups(peers []peer) string {
	var speeds []float64
	for _, p := range peers {
		speeds = append(speeds, p.speed)
	}
	slices.Sort(speeds)
	split := 1
	for n := range speeds[1:] {
		if speeds[n+1]/speeds[n] > speeds[split]/speeds[split-1] {
			split = n + 1
		}
	}
	slow, fast := speeds[:split], speeds[split:]
	return fmt.Sprintf("2 groups, %d at %s and %d at %s", len(fast), units.Throughput(median(fast)), len(slow), units.Throughput(median(slow)))
}

// comparedWithPast says how many agents have a past, and how far they are from it.
func (h *history) comparedWithPast(i int, running []*track) (what string, well bool) {
	compared, lowest := 0, math.Inf(1)
	for _, t := range running {
		some := false
		for _, now := range h.paces(t, i) {
			if past, ok := h.past(t, i, now); ok {
				some, lowest = true, min(lowest, now.speed/past.speed)
			}
		}
		compared += boolean(some)
	}
	if compared == 0 {
		return fmt.Sprintf("in %s of watching, no agent had a past at its size and load", units.Age(h.at[i].Sub(h.at[0]))), false
	}
	return fmt.Sprintf("%s compared, the slowest at %s of its earlier speed", of(compared, running), percent(lowest)), compared == len(running) && lowest >= SlowerSpeed
}
