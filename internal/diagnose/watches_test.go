// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
)

// affected reports whether an incident is about an agent.
func affected(f *fleets.Fleet, a diagnose.Identity) bool {
	return slices.ContainsFunc(f.Want, func(w fleets.Want) bool { return w.Agent == a.Name || w.Agent == "" && len(f.Alerts) == 0 }) ||
		slices.ContainsFunc(f.Alerts, func(alert fleets.Alert) bool {
			return map[string]string{"service_name": a.Service, "k8s_pod_name": a.Pod, "host_name": a.Host, "nixl_agent_name": a.Name}[alert.Label] == alert.Value
		})
}

// seen returns the kinds of the findings that name an affected agent, and everything that a tool says falsely.
func seen(f *fleets.Fleet, r *diagnose.Result) (kinds string, wrong []string) {
	var named []string
	for _, finding := range r.Findings {
		is := slices.ContainsFunc(finding.Agents, func(a diagnose.Identity) bool { return affected(f, a) })
		isnt := slices.ContainsFunc(finding.Agents, func(a diagnose.Identity) bool { return !affected(f, a) })
		if is && !slices.Contains(named, string(finding.Kind)) {
			named = append(named, string(finding.Kind))
		}
		if isnt && finding.Severity.AtLeast(diagnose.Warning) {
			wrong = append(wrong, "it isn't about all of these: "+finding.What)
		}
		for _, c := range r.Checks {
			if c.Well && slices.Contains(c.Kinds, finding.Kind) {
				wrong = append(wrong, fmt.Sprintf("the check %q is well, in spite of: %s", c.Name, finding.What))
			}
		}
	}
	return strings.Join(named, "+"), wrong
}

// unknowable has the reasons why watches can't name some incidents, at least at some of the times.
var unknowable = map[string][]string{
	"a page waits for half a minute, because shorter pauses are usual": {
		"an agent that hangs", "an agent that hangs, and whose peers take over its load", "the reads of an agent hang", "agents that hang one after the other",
		"two of sixteen agents hang", "an agent restarts, and its load stays with its peers", "an agent that hangs but for heartbeats",
		"two of eight agents hang while the load falls", "four ranks of a group hang", "a deadlock behind living heartbeats", "a stuck rank among uneven ones",
		"the writes of one worker stop", "a rollout of a setting turns the reads off", "all reads of a pool stop, and its writes go on", "all reads of a pool stop", "a time-out cancels all reads",
	},
	"a page waits until operations fail again and again, because a peer may restart": {
		"7% of an agent's operations fail", "9% of all operations fail", "a few operations of each agent of a host fail", "one operation in 40 fails",
		"operations of seven of eight agents are canceled, because a peer hangs", "split brain after a failover", "a quarter of all reads fails",
		"a fifth of an agent's operations fails", "an agent uses metadata of a peer that has restarted", "a decode worker loses one peer after the other", "a leaf switch reboots",
	},
	"some applications always cancel as many": {"time-outs of a hung peer end as canceled"},
	"at that time, nothing fails or is slow, or not much": {
		"80% fail in one minute of six", "a NIC that flaps", "a link that becomes slower by the minute", "a link degrades within 20 minutes", "a fabric that gets worse in steps",
		"a partition between two racks heals after seven minutes", "a file system for offloaded caches fills and slows", "a storm of pause frames that comes in bursts",
		"a NIC renegotiates its speed for 20 seconds every three minutes",
	},
	"its load fades, as if a load balancer drained it": {"an agent loses its slots until it does nothing"},
	"the agent has just started": {
		"new pods are slow", "a slow rollout to half the speed", "a canary with little load at a fifth of the speed", "a pod uses the wrong NIC after an upgrade",
		"one pod falls back to TCP after a restart", "a replaced pod never transfers", "a host comes back from a reboot with another setting of its IOMMU", "recreated pods that never transfer", "new pods never transfer",
	},
	"a ring remembers too little about a single agent": {
		"one of two agents becomes slow", "one of two workers at a fifth", "half of the agents lose half of their speed", "one of two models in a job becomes slow",
	},
	"there are too few transfers": {
		"few large transfers become 15 times slower", "few large transfers hang", "the offload storage of all agents becomes 20 times slower", "one rank saves its checkpoints slowly",
		"the storage of one host becomes slow", "a tenth of the transfers of an agent are reads, at 40% of the speed", "an object store throttles", "few operations, which all fail",
		"a third of few transfers fails", "a firewall cuts the idle connections of two agents",
	},
	"it restarts fewer than three times": {
		"an agent in a crash loop", "an agent in a fast loop of restarts", "an agent whose ring is new after each crash", "a crash loop of an agent with stores", "a pod that never gets ready",
		"all agents restart in lockstep",
	},
	"a watch that begins then has no frames of the agent": {
		"metrics of an agent stop", "a node is gone", "nothing arrives anymore", "an agent disappears from its host's metrics", "an agent hangs while its Collector restarts",
		"a Collector without storage in a crash loop", "a Collector with storage in a crash loop", "a Collector that is killed every three minutes", "a Collector that runs out of memory",
		"samples of a host with a wrong clock are rejected, most of the time",
	},
	"for half an hour, memory may be registered on demand": {"registered memory that only grows", "a leak beside memory that comes and goes", "a slow leak", "a leak of registrations that follows the load", "registrations leak", "pinned memory grows in steps"},
	"an exit is shown for two minutes, if it was seen":     {"the only agent of a host exits"},
	"a burst may fill a ring once":                         {"a ring that is nearly full", "rings run full behind a noisy neighbor"},
}

// silent is the incidents that a page could know about, but doesn't.
var silent = []string{"ten times as many transfers of a tenth", "75 times as many tiny transfers, with fewer bytes", "a fragmented cache", "a canary with chunks that are far too small"}

// watch is how a tool watches a fleet, for some time from the beginning of an incident on.
type watch struct {
	name    string
	length  time.Duration
	windows diagnose.Windows
	before  time.Duration // since when the tool has watched
	every   time.Duration
}

func (w *watch) see(f *fleets.Fleet) diagnose.Result {
	return diagnose.Now(f.Between(fleets.Begin-w.before, fleets.Begin+w.length, w.every), w.windows)
}

// watches returns those of nixlring why that is started when incidents begin, and those of a page that is open.
func watches() (list []watch) {
	const before, every = 8 * time.Minute, 2500 * time.Millisecond
	for _, length := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		list = append(list, watch{"why " + length.String(), length, diagnose.Watch(length), 0, min(every, length/10)})
	}
	for _, length := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		list = append(list, watch{"page " + length.String(), length, diagnose.Live(10*time.Second, before+length), before, every})
	}
	return list
}

// watchedFleets returns what watches of fleets show, in their order.
func watchedFleets(t *testing.T, all []fleets.Fleet, see func(t *testing.T, f *fleets.Fleet) string) string {
	t.Helper()
	texts := make([]string, len(all))
	t.Run("all", func(t *testing.T) {
		for i, f := range all {
			if len(f.Members) > 100 {
				continue
			}
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				texts[i] = see(t, &f)
			})
		}
	})
	return strings.Join(texts, "")
}

func TestWatchesNameIncidentsThatTheyCanKnow(t *testing.T) {
	table := watchedFleets(t, slices.Concat(fleets.Incidents(), fleets.Strangers(), fleets.Visitors()), func(t *testing.T, f *fleets.Fleet) string {
		text, complete := f.Name+"\n", true
		for _, w := range watches() {
			r := w.see(f)
			kinds, wrong := seen(f, &r)
			for _, s := range wrong {
				t.Errorf("%s: %s", w.name, s)
			}
			if kinds == "" {
				kinds, complete = "-", false
				if says := diagnose.Headline(r.Findings, r.Checks, r.Still); says == "Nothing found" {
					t.Errorf("%s: %s", w.name, says)
				}
			}
			text += fmt.Sprintf("  %-9s %s\n", w.name, kinds)
		}
		reason := ""
		for why, names := range unknowable {
			if slices.Contains(names, f.Name) {
				reason += why
			}
		}
		if slices.Contains(silent, f.Name) {
			reason += "not judged"
		}
		if complete != (reason == "") {
			t.Errorf("the reason is %q:\n%s", reason, text)
		}
		if reason != "" {
			text += "  -         " + reason + "\n"
		}
		return text
	})
	golden.Compare(t, *update, "watches.txt", table)
}

// transient has the reasons why watches warn about healthy fleets: it is true, but passes.
var transient = map[string][]string{
	"the work ends, or comes in bursts": {
		"the end of a benchmark while its processes stay", "an agent with few transfers and heartbeats", "a batch ends", "bursts after minutes of silence", "a host is rebooted",
	},
	"a shared link slows down under load, and the load before isn't known": {"a nightly batch with ten times the load", "a load test for a quarter of an hour"},
	"connections are set up": {"a job that is scaled up, with a slow start", "warm-up after a deployment"},
	"a process is stopped":   {"a worker is stopped for a dump of its memory"},
	"metrics are missing":    {"a host whose clock jumps by two minutes", "metrics of all hosts are lost for three minutes"},
	"clients cancel":         {"clients that cancel most requests for three minutes"},
	"a peer restarts":        {"a peer restarts for 45 s"}, // this is even critical
}

func TestWatchesOfHealthyFleetsFindNoProblem(t *testing.T) {
	known := make(map[string]bool)
	for _, names := range transient {
		for _, name := range names {
			known[name] = true
		}
	}
	watchedFleets(t, slices.Concat(fleets.Healthy(), fleets.HealthyStrangers(), fleets.HealthyVisitors()), func(t *testing.T, f *fleets.Fleet) string {
		said := ""
		for _, w := range watches() {
			for _, finding := range w.see(f).Findings {
				if finding.Severity == diagnose.Critical && finding.Kind != diagnose.Failing || !f.Warns && finding.Severity.AtLeast(diagnose.Warning) {
					said += fmt.Sprintf("%s: %s: %s\n", w.name, finding.Severity, finding.What)
				}
			}
		}
		if (said != "") != known[f.Name] {
			t.Errorf("it is known: %v\n%s", known[f.Name], said)
		}
		return ""
	})
}
