// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// gone returns the jobs with agents that have transferred and then exited, although others of the job still transfer.
func (h *history) gone(i int) (list []Finding) {
	const most = 10 // names
	for _, job := range h.jobs {
		var exited []Identity
		var names []string
		active := false
		for _, t := range job {
			switch { // an agent that disappeared for another reason than an exit may still run
			case t.up(i) != No:
				active = active || h.rate(t, i, h.windows.Window, both) > 0
			case t.states[t.lastSeen(i)].Up == No && h.rate(t, i, h.windows.Before, both) > 0:
				exited, names = append(exited, t.Identity), append(names, t.Identity.String())
			}
		}
		if active && len(exited) > 0 {
			list = append(list, newFinding(Gone, exited, "exited",
				fmt.Sprintf("%s of %s exited within %s.", counted(len(exited), "One agent", "%d agents"), job[0].Job, units.Age(h.windows.Before)),
				"exited: "+strings.Join(names[:min(len(names), most)], ", ")))
		}
	}
	return list
}

// vanished returns the agents that ran when a backend had metrics of them for the last time. Those of a host share a finding. Of an
// agent whose ring this process can see, the process knows more.
func (h *history) vanished(i int) (list []Finding) {
	type host struct{ cluster, host string }
	reporting := make(map[host]bool)
	lost := slices.DeleteFunc(slices.Clone(h.agents), func(t *track) bool {
		reporting[host{t.Cluster, t.Host}] = reporting[host{t.Cluster, t.Host}] || t.states[i] != nil
		n := t.lastSeen(i)
		return t.states[n].Up != Yes || t.states[n].Path != "" || h.at[i].Sub(h.at[n]) < h.windows.Silent
	})
	for _, group := range grouped(lost, func(t *track) host { return host{t.Cluster, t.Host} }) {
		last := 0
		for _, t := range group {
			last = max(last, t.lastSeen(i))
		}
		who, others := host{group[0].Cluster, group[0].Host}, "no other agent of this host reports"
		if reporting[who] {
			others = "other agents of this host report"
		}
		if who.host == "" {
			others = "which host it is isn't known"
		}
		f := newFinding(Missing, identities(group), "no metrics for "+units.Age(h.at[i].Sub(h.at[last])),
			fmt.Sprintf("Metrics no longer arrive from %s.", such(identities(group))), others)
		f.Since = h.at[last]
		list = append(list, f)
	}
	return list
}

// lastSeen returns the last frame up to i that has the agent. i isn't before the first one.
func (t *track) lastSeen(i int) int {
	for t.states[i] == nil {
		i--
	}
	return i
}

// crashLoops returns the agents that restart, or exit and start, again and again. In each life, an agent has totals of its
// own, unless it restarts on its ring.
func (h *history) crashLoops(i int) (list []Finding) {
	for _, lives := range grouped(h.agents, func(t *track) Identity {
		a := t.Identity
		a.ID = ""
		return a
	}) {
		newest := slices.MaxFunc(lives, func(a, b *track) int { return a.first - b.first })
		for _, w := range []struct {
			length time.Duration
			least  float64
		}{{CrashWindow, Restarts}, {CrashLonger, MoreRestarts}} {
			restarts := 0.0
			for _, t := range lives {
				restarts += h.restarts(t, i, w.length)
			}
			if restarts >= w.least {
				f := newFinding(CrashLoop, []Identity{newest.Identity}, "restarts again and again", fmt.Sprintf("%s restarts again and again.", newest.Identity),
					fmt.Sprintf("%.0f restarts or exits in %s", restarts, units.Age(w.length)))
				f.Ratio = restarts
				list = append(list, f)
				break
			}
		}
	}
	return list
}

// restarts returns how often an agent restarted, exited or had new totals in the time before frame i. An agent that is absent
// may still run.
func (h *history) restarts(t *track, i int, ago time.Duration) float64 {
	exits, starts := 0, 0
	from := max(t.first, h.index(i, ago))
	last := t.states[t.lastSeen(from)]
	for _, a := range t.states[from : max(i, from)+1] {
		if a != nil {
			exits += boolean(last.Up == Yes && a.Up == No)
			starts += boolean(!last.Start.Equal(a.Start))
			last = a
		}
	}
	return max(h.during(t, i, ago).restarts, float64(exits), float64(starts))
}
