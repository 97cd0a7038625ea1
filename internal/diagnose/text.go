// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

const (
	seeSlow  = "nixlring slow prints this agent's slow transfers as they occur, and so does the slow-transfer log (event nixl.transfer.slow)."
	checkNIC = "Check the agent's NIC (negotiated speed, error counters), its GPU and its NUMA placement; "
)

// String returns the name of an agent, with its pod and host if they are known.
func (a Identity) String() string {
	name := a.Name
	if a.Pod != "" {
		name += " (pod " + strings.TrimPrefix(a.Namespace+"/", "/") + a.Pod + ")"
	}
	if a.Host != "" {
		name += " on " + a.Host
	}
	return name
}

// String returns the name of a job.
func (j Job) String() string { return cmp.Or(j.Service, "this directory") }

func percent(ratio float64) string { return fmt.Sprintf("%.0f%%", 100*ratio) }

func size(bytes float64) string { return units.Memory(int64(bytes)) }

func (p *pace) String() string {
	return fmt.Sprintf("%s %s of %s on average, %s each, %s", units.Count(uint64(p.count)), p.way.noun()+"s", size(p.size), units.Duration(p.time), units.Throughput(p.speed))
}

func straggler(p peer, speed, took float64, peers int) Finding {
	ratio := p.speed / speed
	return Finding{
		Kind: Straggler, Severity: Warning, Agents: []Identity{p.agent}, Ratio: ratio,
		Short: "straggler: " + percent(ratio) + " of peers",
		What:  fmt.Sprintf("%s %s data at %s of the speed of its peers: %s instead of %s.", p.agent, p.verb(), percent(ratio), units.Throughput(p.speed), units.Throughput(speed)),
		Evidence: []string{
			p.pace.String(),
			fmt.Sprintf("median of %d peers with similar sizes: %s each, %s", peers, units.Duration(took), units.Throughput(speed)),
		},
		Not:  "It isn't the size of its transfers or its load: only agents with similar sizes are compared, and idle time doesn't count.",
		Next: checkNIC + "compare them with those of a peer. " + seeSlow,
	}
}

// tail says that only a few transfers of a straggler are slow.
func (f *Finding) tail() {
	f.Short = "a few very slow transfers"
	f.What = fmt.Sprintf("A few transfers of %s take very long. On average, it moves data at %s of the speed of its peers.", f.Agents[0], percent(f.Ratio))
	f.Evidence = append(f.Evidence, "the median of its transfer times is like that of its peers")
	f.Not = "It isn't a slow link or NIC: most of its transfers are as fast as those of its peers."
	f.Next = "Look for what its slow transfers share: a peer, a size or a time. " + seeSlow
}

func slowdown(a Identity, now, past pace) Finding {
	ratio := now.speed / past.speed
	return Finding{
		Kind: Slower, Severity: Warning, Agents: []Identity{a}, Ratio: ratio,
		Short: percent(ratio) + " of its past speed",
		What:  fmt.Sprintf("%s %s data at %s of its own past speed: %s instead of %s.", a, now.verb(), percent(ratio), units.Throughput(now.speed), units.Throughput(past.speed)),
		Evidence: []string{
			"now: " + now.String(),
			past.when() + fmt.Sprintf(": %s each, %s", units.Duration(past.time), units.Throughput(past.speed)),
		},
		Not:  "It isn't a change of the size of its transfers, and it doesn't move more bytes per second than before.",
		Next: checkNIC + "and what changed when it became slower. " + seeSlow,
	}
}

func jobSlowdown(slower []Finding, compared int, remembered bool) Finding {
	ratios := make([]float64, len(slower))
	f := Finding{Kind: JobSlower, Severity: Critical, job: true, Evidence: slower[0].Evidence}
	if remembered {
		f.Severity = Warning // the load is unknown
	}
	for i := range slower {
		ratios[i] = slower[i].Ratio
		f.Agents = append(f.Agents, slower[i].Agents[0])
	}
	f.Ratio = median(ratios)
	f.Short = percent(f.Ratio) + " of its past speed, like its peers"
	f.What = fmt.Sprintf("%d of %d agents of %s move data at %s of their past speed.", len(slower), compared, f.Agents[0].Job, percent(f.Ratio))
	f.Not = "It isn't a single agent, NIC or link: most agents of the job are slower at the same time."
	f.Next = "Check what they share: a change of the transport (UCX falls back to TCP if RDMA devices are missing; UCX_LOG_LEVEL=info prints the choice), " +
		"the fabric, a new image or driver. " + seeSlow
	return f
}

func stall(a Identity, way way, last, now time.Time, rate float64) Finding {
	quiet := units.Age(now.Sub(last))
	f := Finding{
		Kind: Stalled, Severity: Critical, Agents: []Identity{a}, Since: last,
		Short:    "no transfer for " + quiet,
		What:     fmt.Sprintf("%s runs, but completed no transfer for %s.", a, quiet),
		Evidence: []string{fmt.Sprintf("before: %s transfers per second, regularly", units.Rate(rate))},
		Not:      "It isn't missing telemetry: the agent is still reported. NIXL reports a transfer when it completes, so one that hangs is invisible.",
		Next: "Look at the process's stacks (py-spy dump, gdb) and at the transport's log. If the agent was taken out of service on purpose, ignore this. " +
			seeSlow,
	}
	if way != both {
		doing := way.noun()
		f.Severity, f.Short = Warning, fmt.Sprintf("no %s for %s", doing, quiet)
		f.What = fmt.Sprintf("%s completed no %s for %s, although it completes %ss.", a, doing, quiet, (reads - way).noun())
	}
	return f
}

// stopped is a stall that began before the watch: the ring remembers transfers.
func stopped(a Identity, w way, up Up, before uint64, peers int, watched time.Duration) Finding {
	quiet := units.Age(watched)
	f := Finding{
		Kind: Stalled, Severity: Warning, Agents: []Identity{a},
		Short:    fmt.Sprintf("no %s for %s or more", w.noun(), quiet),
		What:     fmt.Sprintf("%s completed no %s for %s or more, although it did before.", a, w.noun(), quiet),
		Evidence: []string{fmt.Sprintf("its ring still has %s transfers from before", units.Count(before)), othersActive(peers)},
		Not:      "It isn't a spare agent: it has transferred before.",
		Next:     "Look at the process's stacks (py-spy dump, gdb) and at the transport's log. If it was taken out of service on purpose, ignore this.",
	}
	if up == Unknown {
		f.Not += unknownUp
	}
	return f
}

const unknownUp = " It isn't known whether the agent still runs."

func othersActive(n int) string {
	return fmt.Sprintf("%d other agents of the job still transfer", n)
}

func loadMoved() string { return "its peers have taken over its load, as if a load balancer had" }

func jobStall(stalled []Finding) Finding {
	f := Finding{Kind: JobStalled, Severity: Info, job: true, Evidence: stalled[0].Evidence}
	for i := range stalled {
		f.Agents = append(f.Agents, stalled[i].Agents[0])
		if stalled[i].Since.After(f.Since) {
			f.Since = stalled[i].Since
		}
	}
	f.Short = "no transfer, like its peers"
	f.What = fmt.Sprintf("All agents of %s run, but none completes transfers.", f.Agents[0].Job)
	f.Not = "It isn't a slow decrease of the load: transfers stopped at once. If no requests arrive, this is normal."
	f.Next = "Compare with the running requests of the inference engine. If there are any, look at the processes' stacks and at the fabric."
	return f
}

func idle(a Identity, w way, busy int, window time.Duration) Finding {
	return Finding{
		Kind: Idle, Severity: Info, Agents: []Identity{a}, Short: fmt.Sprintf("no %s, unlike its peers", w.noun()),
		What:     fmt.Sprintf("%s completed no %s in %s and, as far as its ring shows, few or none before, unlike its peers.", a, w.noun(), units.Age(window)),
		Evidence: []string{fmt.Sprintf("%s complete %ss", counted(busy, "one agent", "%d agents"), w.noun())},
		Not:      "It needn't be a problem: the agent may be spare, or have another role.",
		Next:     "If it should have work, look at the stacks of its process, or watch for longer.",
	}
}

func posting(a Identity, p pace, post float64) Finding {
	share := post / p.time
	return Finding{
		Kind: PostBound, Severity: Warning, Agents: []Identity{a}, Ratio: share,
		Short:    percent(share) + " of the time is posting",
		What:     fmt.Sprintf("%s spends %s of its transfer time on posting, before any data moves.", a, percent(share)),
		Evidence: []string{p.String(), "mean post time: " + units.Duration(post)},
		Not:      "It isn't the network: the time is spent on the CPU of this host.",
		Next: "Use fewer, larger blocks (descriptors), prepare transfers once and repost them, and check that the agent's threads get enough CPU. " +
			seeSlow,
	}
}

func waiting(a Identity, p pace, small, took, fast float64) Finding {
	return Finding{
		Kind: SmallBehindLarge, Severity: Warning, Agents: []Identity{a}, Ratio: took / p.time,
		Short: "small behind large",
		What:  fmt.Sprintf("Small transfers of %s wait behind large ones.", a),
		Evidence: []string{
			p.String(),
			fmt.Sprintf("%s of the transfers have at most %s, but take up to %s; a tenth takes at most %s",
				percent(MostTransfers), size(small), units.Duration(took), units.Duration(fast)),
		},
		Not:  "It isn't a slow link: the large transfers use it fully.",
		Next: "Split large transfers into chunks, or give small ones an agent, a queue or a NIC of their own. " + seeSlow,
	}
}

func failures(agents []Identity, ratio float64, types map[string]float64) Finding {
	who, upTo := agents[0].String(), ""
	if len(agents) > 1 {
		who, upTo = fmt.Sprintf("%d agents of %s", len(agents), agents[0].Job), "up to "
	}
	return Finding{
		Kind: Failing, Severity: Critical, Agents: agents, Ratio: ratio, job: true,
		Short:    upTo + percent(ratio) + " fail",
		What:     fmt.Sprintf("Operations of %s fail, %s%s of them.", who, upTo, percent(ratio)),
		Evidence: []string{errorsByType(types)},
		Not:      "Canceled operations don't count, and the errors are still going on.",
		Next: "If several agents fail at once, look for the peer or fabric that they share. backend: see the transport's log; " +
			"other types: see docs/alerts.md#nixlerrors. " + seeErrors,
	}
}

func someFailures(a Identity, ratio float64, types map[string]float64) Finding {
	return Finding{
		Kind: SomeFail, Severity: Warning, Agents: []Identity{a}, Ratio: ratio,
		Short:    percent(ratio) + " fail",
		What:     fmt.Sprintf("%s of the operations of %s fail, again and again.", percent(ratio), a),
		Evidence: []string{errorsByType(types)},
		Not:      "Canceled operations don't count.",
		Next:     "backend: see the transport's log; other types: see docs/alerts.md#nixlagenterrors. " + seeErrors,
	}
}

const seeErrors = "nixlring read RING --follow --category error prints each error."

func errorsByType(types map[string]float64) string {
	kinds := slices.SortedFunc(maps.Keys(types), func(a, b string) int { return cmp.Or(cmp.Compare(types[b], types[a]), strings.Compare(a, b)) })
	var parts []string
	for _, k := range kinds {
		parts = append(parts, fmt.Sprintf("%s %s", units.Count(uint64(types[k])), k))
	}
	return "errors: " + strings.Join(parts, ", ")
}

func lost(a Identity, n float64) Finding {
	return Finding{
		Kind: EventsLost, Severity: Warning, Agents: []Identity{a},
		Short:    "events lost: " + units.Count(uint64(n)),
		What:     fmt.Sprintf("Telemetry of %s is incomplete: its totals are too low.", a),
		Evidence: []string{fmt.Sprintf("a full ring, dropped events or torn transfers: %s", units.Count(uint64(n)))},
		Not:      "Its transfers aren't affected.",
		Next:     "Set a larger NIXL_TELEMETRY_BUFFER_SIZE (a power of two) for the agent; nixlring inspect RING advises a size.",
	}
}

func taken(agents []Identity, n float64) Finding {
	who := agents[0].String()
	if len(agents) > 1 {
		who = fmt.Sprintf("%d agents, such as %s", len(agents), who)
	}
	evidence := []string{}
	if n > 0 {
		evidence = append(evidence, fmt.Sprintf("times that events were gone: %s", units.Count(uint64(n))))
	}
	return Finding{
		Kind: EventsTaken, Severity: Warning, Agents: agents, job: len(agents) > 1,
		Short:    "events taken",
		What:     fmt.Sprintf("Another process consumes the telemetry of %s.", who),
		Evidence: evidence,
		Not:      "It isn't nixlring, which only observes.",
		Next:     "Stop the other consumer, such as NIXL's telemetry_reader. nixlring inspect RING names it.",
	}
}

func nearlyFull(a Identity, fill float64) Finding {
	return Finding{
		Kind: NearlyFull, Severity: Warning, Agents: []Identity{a}, Ratio: fill,
		Short:    "ring " + percent(fill) + " full",
		What:     fmt.Sprintf("The ring of %s is %s full. A slightly larger burst loses events.", a, percent(fill)),
		Evidence: []string{},
		Not:      "Nothing is lost yet.",
		Next:     "Set a larger NIXL_TELEMETRY_BUFFER_SIZE for the agent, or shorten the receiver's run_interval.",
	}
}

func exits(agents []Identity, ago time.Duration) Finding {
	var names []string
	for _, a := range agents[:min(len(agents), 10)] {
		names = append(names, a.String())
	}
	return Finding{
		Kind: Gone, Severity: Info, Agents: agents, job: true,
		Short:    "exited",
		What:     fmt.Sprintf("%s of %s exited within %s.", counted(len(agents), "One agent", "%d agents"), agents[0].Job, units.Age(ago)),
		Evidence: []string{"exited: " + strings.Join(names, ", ")},
		Not:      "It needn't be a crash: a rollout, a smaller job or an autoscaler looks the same.",
		Next:     "Check the exit code of the process, the events of its pod, and dmesg.",
	}
}

// verb says what an agent does, as far as that makes a difference.
func (p *pace) verb() string {
	if !p.mixed {
		return "moves"
	}
	return [...]string{"writes", "reads", "moves"}[p.way]
}

func (w way) noun() string { return [...]string{"write", "read", "transfer"}[w] }

// when says which past a pace is of.
func (p *pace) when() string {
	if p.remembered {
		return "mean of " + units.Count(uint64(p.count)) + " earlier transfers that its ring remembered"
	}
	return "median of the past"
}
