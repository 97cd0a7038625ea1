// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// The names of labels that an alert has to name something with.
const (
	ofAgent = "nixl_agent_name"
	ofHost  = "host_name"
	ofJob   = "service_name"
)

// sway is a wave around 1.
func sway(t, period time.Duration, part float64) float64 {
	return 1 + part*math.Sin(2*math.Pi*float64(t)/float64(period))
}

// chance returns a number from 0 to 1 for an agent and a time, always the same one.
func chance(i int, n time.Duration) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, i, "/", int64(n), "/", int64(n)*7919+int64(i)*104729)
	return float64(h.Sum64()>>11) / (1 << 53)
}

// jitter is noise around 1, which differs by agent and from minute to minute.
func jitter(i int, t time.Duration, part float64) float64 {
	return 1 + part*(2*chance(i, t/time.Minute)-1)
}

// traffic is a load that goes up and down, with noise of its own for each agent.
func traffic(i int, period time.Duration, part float64, loads ...Load) func(time.Duration) State {
	return func(t time.Duration) State {
		s := State{Loads: make([]Load, len(loads))}
		for n, l := range loads {
			s.Loads[n] = slowed(scaled(l, sway(t, period, part)*jitter(i+1000*n, t, 0.15)), jitter(i+7000*n+500, t, 0.04))
		}
		return s
	}
}

// scale multiplies times and rates of all loads.
func scale(s *State, slower, rate float64) {
	for n := range s.Loads {
		s.Loads[n] = scaled(slowed(s.Loads[n], slower), rate)
	}
}

// Visitors are incidents by an author who knows clusters, but not the limits of the rules.
func Visitors() []Fleet { //nolint:funlen,gocognit,gocyclo,maintidx // a table
	return []Fleet{
		{
			Name: "a hash collision slows some pairs of two agents", Length: Begin + 20*time.Minute,
			Why: "ECMP puts flows to three of eight peers on one uplink, so they get a third of it. " +
				"Requests that use these pairs wait three times as long until the flows are hashed again.",
			Members: on("llama-decode", 16, 4, func(i int) func(time.Duration) State {
				free, shared := at(16*mib, 45*gb, 10), at(16*mib, 45*gb, 6)
				return with(traffic(i, 25*time.Minute, 0.3, free, shared), func(t time.Duration, s *State) {
					if t >= Begin && (i == 3 || i == 9) {
						s.Loads[1] = slowed(s.Loads[1], 3)
					}
				})
			}),
			Want:   []Want{{diagnose.Straggler, "llama-decode-3"}, {diagnose.Straggler, "llama-decode-9"}},
			Alerts: []Alert{{"", ofAgent, "llama-decode-3"}, {"", ofAgent, "llama-decode-9"}},
			Lasts:  true,
		},
		{
			Name: "a storm of pause frames that comes in bursts", Length: Begin + 20*time.Minute,
			Why: "One NIC sends pause frames and stops the whole fabric for half a minute, every two to four minutes. " +
				"Find the port that sends them, and turn it off.",
			Members: on("mixtral", 24, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 17*time.Minute, 0.25, at(8*mib, 42*gb, 20)), func(t time.Duration, s *State) {
					age := t - Begin
					slot := age / (3 * time.Minute)
					if age >= 0 && during(age%(3*time.Minute), time.Duration(chance(0, slot)*4)*15*time.Second, 30*time.Second) {
						scale(s, 40, 0.5)
					}
				})
			}),
			Want:   []Want{{Kind: diagnose.JobSlower}},
			Alerts: []Alert{{"", ofJob, "mixtral"}},
		},
		{
			Name: "a NIC renegotiates its speed for 20 seconds every three minutes", Length: Begin + 30*time.Minute,
			Why: "A marginal cable: 400 Gbit/s become 100 for 20 seconds. A tenth of the requests of this host waits four times " +
				"as long. It isn't urgent, but the cable must be replaced. The mean moves by a third only, so totals may not show it.",
			Members: on("qwen", 8, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 31*time.Minute, 0.2, at(32*mib, 45*gb, 8)), func(t time.Duration, s *State) {
					if t < Begin || i/2 != 1 {
						return
					}
					slow, fast := slowed(s.Loads[0], 4), s.Loads[0]
					switch t % (3 * time.Minute) {
					case 0:
						s.Loads[0] = slow
					case 15 * time.Second: // 5 of 15 seconds
						s.Loads = []Load{scaled(slow, 1./3), scaled(fast, 2./3)}
					}
				})
			}),
			Alerts: []Alert{{"", ofHost, "gpu-01"}}, Within: 25 * time.Minute,
		},
		{
			Name: "a leaf switch reboots", Length: Begin + 15*time.Minute,
			Why: "A leaf reboots for four minutes. Two hosts reach nobody, and everybody else fails to reach them. " +
				"Requests fail until the router knows it: an operator must drain the two hosts, or find out why the switch rebooted.",
			Requests: 60,
			Members: on("deepseek", 16, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 22*time.Minute, 0.3, at(24*mib, 46*gb, 12)), func(t time.Duration, s *State) {
					rate := s.Loads[0].Rate
					switch behind := i < 4; {
					case during(t, Begin, 4*time.Minute) && behind:
						s.Loads, s.Errors = nil, map[string]float64{"remote_disconnect": 0.4 * rate}
					case during(t, Begin, 4*time.Minute):
						scale(s, 1, 0.75)
						s.Errors = map[string]float64{"remote_disconnect": 0.25 * rate}
					case during(t, Begin+4*time.Minute, time.Minute):
						scale(s, 1.8, 1.3)
					}
				})
			}),
			Want:     []Want{{Kind: diagnose.Failing}},
			Alerts:   []Alert{{"", ofJob, "deepseek"}},
			Critical: true,
		},
		{
			Name: "a host comes back from a reboot with another setting of its IOMMU", Length: Begin + 14*time.Minute,
			Why: "The new kernel translates addresses of the NIC and routes peer-to-peer traffic over the root complex. " +
				"All eight agents of the host have less than half of their speed, and nothing else shows it.",
			Members: on("fleet64", 64, 8, func(i int) func(time.Duration) State {
				return with(traffic(i, 40*time.Minute, 0.2, at(64*mib, 45*gb, 5)), func(t time.Duration, s *State) {
					if i/8 != 5 {
						return
					}
					s.Absent = during(t, Begin-7*time.Minute, 7*time.Minute)
					s.Restart = t == Begin
					if t >= Begin {
						scale(s, 2.3, 1)
						s.Loads[0].Post *= 3
					}
				})
			}),
			Want:   []Want{{diagnose.Straggler, "fleet64-40"}},
			Alerts: []Alert{{"", ofHost, "gpu-05"}},
			Lasts:  true,
		},
		{
			Name: "a GPU throttles its clock and posts slowly, three of five minutes", Length: Begin + 25*time.Minute,
			Why: "The GPU posts its transfers itself. When it's too hot, its clock falls, and so does the rate at which it posts. " +
				"A fan is broken: the host must be drained before the GPU fails.",
			Members: on("gpu-posted", 6, 3, func(i int) func(time.Duration) State {
				l := at(128*kib, 40*gb, 400)
				return with(traffic(i, 19*time.Minute, 0.2, l), func(t time.Duration, s *State) {
					if t >= Begin && i == 2 && (t-Begin)%(5*time.Minute) < 3*time.Minute {
						s.Loads[0].Post += 60 * time.Microsecond
						s.Loads[0].Time += 60 * time.Microsecond
					}
				})
			}),
			Want:   []Want{{diagnose.PostBound, "gpu-posted-2"}},
			Alerts: []Alert{{"", ofAgent, "gpu-posted-2"}}, Within: 20 * time.Minute,
		},
		{
			Name: "a decode worker loses one peer after the other", Length: Begin + 25*time.Minute,
			Why: "Every four minutes, one more of six prefill peers becomes unreachable for this worker: its NIC runs out of " +
				"queue pairs. Whoever looks at the first two lost peers can still drain the worker in time.",
			Requests: 25,
			Members: on("small-decode", 5, 1, func(i int) func(time.Duration) State {
				return with(traffic(i, 27*time.Minute, 0.3, reads(at(12*mib, 44*gb, 9))), func(t time.Duration, s *State) {
					if t < Begin || i != 2 {
						return
					}
					lost := float64(min(4, 1+int((t-Begin)/(4*time.Minute)))) / 6
					s.Errors = map[string]float64{"remote_disconnect": lost * s.Loads[0].Rate}
					scale(s, 1, 1-lost)
				})
			}),
			Want:   []Want{{Kind: diagnose.Failing}},
			Alerts: []Alert{{"", ofAgent, "small-decode-2"}},
			Lasts:  true,
		},
		{
			Name: "a file system for offloaded caches fills and slows", Length: Begin + 32*time.Minute,
			Why: "The file system behind GDS is nearly full. Writes get slower from minute to minute, and some fail in the end. " +
				"Reads of peers, which are most of the transfers, stay fast. Old caches must be deleted.",
			Members: on("offload", 8, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 35*time.Minute, 0.2, reads(at(2*mib, 40*gb, 40)), at(32*mib, 6*gb, 1.5)), func(t time.Duration, s *State) {
					s.Loads[1] = slowed(s.Loads[1], 1+12*ramp(t, Begin, 20*time.Minute))
					if t >= Begin+18*time.Minute {
						s.Errors = map[string]float64{"backend": s.Loads[1].Rate / 2}
						s.Loads[1].Rate /= 2
					}
				})
			}),
			Want:   []Want{{Kind: diagnose.JobSlower}},
			Alerts: []Alert{{"", ofJob, "offload"}}, Within: 20 * time.Minute, Lasts: true,
		},
		{
			Name: "a canary with chunks that are far too small", Length: Begin + 20*time.Minute,
			Why: "Two canary pods have chunks of 16 KiB instead of 8 MiB: 512 times as many transfers for the same bytes, which take " +
				"tens of times as long. An operator must see it before all pods have the setting. The alert only says how many pods of the job do it.",
			Members: on("gemma", 14, 7, func(i int) func(time.Duration) State {
				return with(traffic(i, 29*time.Minute, 0.25, at(8*mib, 45*gb, 20)), func(t time.Duration, s *State) {
					if t < Begin || i < 12 {
						return
					}
					s.Restarted = t == Begin
					s.Loads[0] = Load{Size: 16 * kib, Time: 15 * time.Microsecond, Post: 9 * time.Microsecond, Rate: 512 * s.Loads[0].Rate}
				})
			}),
			Alerts: []Alert{{"NIXLSmallerTransfers", ofJob, "gemma"}}, // package diagnose doesn't judge sizes
			Lasts:  true,
		},
		{
			Name: "a rollout of a setting turns the reads off", Length: Begin + 35*time.Minute,
			Why: "A wrong key in the new configuration turns reads of caches off, one pod after the other. Everything is computed " +
				"again, GPUs are full, and no error shows it. The rollout must be stopped.",
			Requests: 50,
			Members: on("kv-pool", 12, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 33*time.Minute, 0.25, at(4*mib, 44*gb, 10), reads(at(4*mib, 44*gb, 20))), func(t time.Duration, s *State) {
					out := Begin + time.Duration(i)*time.Minute
					s.Restarted = t == out
					if t >= out {
						s.Loads[1].Rate = 0
					}
				})
			}),
			Alerts: []Alert{{"", ofJob, "kv-pool"}}, Within: 30 * time.Minute, Lasts: true,
		},
		{
			Name: "a router sends everything to one of four replicas", Length: Begin + 20*time.Minute,
			Why: "The router lost the health of three replicas of four. The fourth has all of the load and is slower for it; " +
				"twelve GPUs are paid for and do nothing.",
			Requests: 45,
			Members: on("routed", 16, 4, func(i int) func(time.Duration) State {
				return with(traffic(i/4, 21*time.Minute, 0.3, reads(at(256*mib, 45*gb, 10))), func(t time.Duration, s *State) {
					switch {
					case t < Begin:
					case i/4 == 2:
						scale(s, 1.7, 4)
					default:
						s.Loads = nil
					}
				})
			}),
			Want:   []Want{{diagnose.Stalled, "routed-0"}, {diagnose.Stalled, "routed-15"}},
			Alerts: []Alert{{"", ofJob, "routed"}},
			Lasts:  true,
		},
		{
			Name: "a leak of registrations that follows the load", Length: 5 * time.Hour, Long: true,
			Why: "Each canceled request leaves its buffer registered: about 6 GiB per hour, and none while there's no load. " +
				"The host has 80 GiB left, so the process dies tomorrow. A ticket is enough.",
			Members: on("leaky", 3, 3, func(i int) func(time.Duration) State {
				return with(traffic(i, 50*time.Minute, 0.8, at(4*mib, 45*gb, 15)), func(t time.Duration, s *State) {
					s.Memory = 24 << 30
					if i == 1 && t > Begin {
						h := (t - Begin).Hours()
						w := 2 * math.Pi / (50. / 60)
						s.Memory += uint64(6 * (1 << 30) * (h + 0.8/w*(1-math.Cos(w*h))))
					}
				})
			}),
			Alerts: []Alert{{"", ofAgent, "leaky-1"}}, Within: 4 * time.Hour,
		},
		{
			Name: "all agents restart in lockstep", Length: Begin + 40*time.Minute,
			Why: "The liveness probe asks a service that all agents share. When it's slow, all pods are killed at once, and the job " +
				"is down for a minute and a half, every six minutes.",
			Members: on("moe", 8, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 23*time.Minute, 0.2, at(16*mib, 45*gb, 14)), func(t time.Duration, s *State) {
					if t < Begin {
						return
					}
					in := (t - Begin) % (6 * time.Minute)
					if in < 90*time.Second {
						s.Loads, s.Up = nil, diagnose.No
					}
					s.Restarted = in == 90*time.Second
				})
			}),
			Want:   []Want{{diagnose.CrashLoop, "moe-0"}, {diagnose.CrashLoop, "moe-7"}},
			Alerts: []Alert{{"NIXLAgentCrashLoop", ofJob, "moe"}}, Within: 30 * time.Minute,
		},
		{
			Name: "samples of a host with a wrong clock are rejected, most of the time", Length: Begin + 25*time.Minute,
			Why: "The clock of a host drifts and is set back, again and again. The backend rejects its samples for 105 of 165 seconds. " +
				"Nothing is wrong with its agents, but nobody would see it if something were.",
			Members: on("clocks", 12, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 26*time.Minute, 0.25, at(8*mib, 45*gb, 25)), func(t time.Duration, s *State) {
					s.Absent = i/2 == 4 && t >= Begin && (t-Begin)%(165*time.Second) < 105*time.Second
				})
			}),
			Alerts: []Alert{{"", ofHost, "gpu-04"}}, Within: 20 * time.Minute,
		},
		{
			Name: "a partition between two racks heals after seven minutes", Length: Begin + 16*time.Minute,
			Why: "Two racks can't reach each other. For three minutes, half of all transfers wait; then they fail, until the partition heals. " +
				"Half of the requests fail, so an operator must be woken.",
			Requests: 40,
			Members: on("racks", 10, 5, func(i int) func(time.Duration) State {
				return with(traffic(i, 24*time.Minute, 0.3, at(16*mib, 44*gb, 18)), func(t time.Duration, s *State) {
					rate := s.Loads[0].Rate
					switch age := t - Begin; {
					case age < 0:
					case age < 3*time.Minute:
						scale(s, 1, 0.5)
					case age < 7*time.Minute:
						scale(s, 1, 0.5)
						s.Errors = map[string]float64{"remote_disconnect": 0.5 * rate}
					case age < 8*time.Minute:
						scale(s, 1.5, 1.6)
					}
				})
			}),
			Want:     []Want{{Kind: diagnose.Failing}},
			Alerts:   []Alert{{"", ofJob, "racks"}},
			Critical: true,
		},
		{
			Name: "small urgent reads wait behind bulk writes at the peak", Length: Begin + 25*time.Minute,
			Why: "Bulk offloads have the traffic class of urgent reads since an upgrade of the switches. At the peak, when there are many, " +
				"reads of 1 MiB take twelve times as long. Users wait for each of them; nobody waits for a bulk write.",
			Members: on("priorities", 8, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 30*time.Minute, 0.1, reads(at(mib, 40*gb, 200)), at(128*mib, 20*gb, 2)), func(t time.Duration, s *State) {
					switch {
					case during(t, 8*time.Minute, 12*time.Minute): // an earlier peak, before the upgrade
						s.Loads[0], s.Loads[1] = slowed(s.Loads[0], 1.2), slowed(scaled(s.Loads[1], 3), 1.1)
					case t >= Begin:
						s.Loads[0], s.Loads[1] = slowed(s.Loads[0], 12), slowed(scaled(s.Loads[1], 4), 1.2)
					}
				})
			}),
			Want:   []Want{{Kind: diagnose.JobSlower}},
			Alerts: []Alert{{"", ofJob, "priorities"}},
			Lasts:  true,
		},
		{
			Name: "an agent loses its slots until it does nothing", Length: Begin + 22*time.Minute,
			Why: "A completion that gets lost keeps a slot forever. Within eight minutes, the agent has none left: its last requests wait " +
				"until they time out. What completes is as fast as ever. The worker must be restarted. Totals look as if the router drained it.",
			Requests: 28,
			Members: on("slots", 7, 7, func(i int) func(time.Duration) State {
				return with(traffic(i, 28*time.Minute, 0.2, reads(at(48*mib, 45*gb, 6))), func(t time.Duration, s *State) {
					lost := ramp(t, Begin, 8*time.Minute)
					if i == 4 {
						scale(s, 1, 1-lost)
					} else {
						scale(s, 1, 1+lost/6)
					}
				})
			}),
			Alerts: []Alert{{"", ofAgent, "slots-4"}}, Within: 20 * time.Minute, Lasts: true,
		},
		{
			Name: "new pods of a rollout can't read from old ones", Length: Begin + 20*time.Minute,
			Why: "The new version describes its blocks in another way. Three of twelve pods have it, and three of four of their " +
				"transfers, those with old pods, fail. The rollout waits; it must be rolled back.",
			Members: on("versions", 12, 3, func(i int) func(time.Duration) State {
				return with(traffic(i, 32*time.Minute, 0.2, reads(at(8*mib, 45*gb, 12))), func(t time.Duration, s *State) {
					out := Begin + time.Duration(i)*4*time.Minute
					if i > 2 || t < out {
						return
					}
					s.Restarted = t == out
					s.Errors = map[string]float64{"mismatch": 0.75 * s.Loads[0].Rate}
					scale(s, 1, 0.25)
				})
			}),
			Want:   []Want{{Kind: diagnose.Failing}},
			Alerts: []Alert{{"", ofJob, "versions"}}, Within: 15 * time.Minute, Lasts: true,
		},
		{
			Name: "bulk transfers of another job take the NICs", Length: Begin + 18*time.Minute,
			Why: "A user starts a shuffle of data on the hosts of the chat service, whose transfers take four times as long from then on. " +
				"The shuffle needs a limit, or other hosts.",
			Members: append(on("chat", 8, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 26*time.Minute, 0.2, at(16*mib, 44*gb, 15)), func(t time.Duration, s *State) {
					if t >= Begin {
						scale(s, 4, 1)
					}
				})
			}), on("shuffle", 4, 1, func(i int) func(time.Duration) State {
				return with(traffic(i+100, 15*time.Minute, 0.1, at(512*mib, 15*gb, 20)), func(t time.Duration, s *State) {
					s.Absent = t < Begin-30*time.Second
					if t < Begin {
						s.Loads = nil
					}
				})
			})...),
			Want:   []Want{{Kind: diagnose.JobSlower}},
			Alerts: []Alert{{"", ofJob, "chat"}},
			Lasts:  true,
		},
		{
			Name: "a firewall cuts the idle connections of two agents", Length: Begin + 25*time.Minute,
			Why: "A firewall forgets connections that are idle for a minute. The first transfer after each pause fails after a time-out, or " +
				"takes seconds: one in five fails. It's a small tenant, but its users see it in every conversation.",
			Members: on("tenant", 2, 1, func(i int) func(time.Duration) State {
				l := at(24*mib, 22*gb, 0.3)
				return func(t time.Duration) State {
					s := State{Loads: []Load{scaled(l, 2*chance(i, t/(30*time.Second)))}}
					if t >= Begin {
						rate := s.Loads[0].Rate
						again := scaled(l, 0.2)
						again.Rate, again.Time = rate*0.2, 5*time.Second
						s.Loads = []Load{scaled(s.Loads[0], 0.6), again}
						s.Errors = map[string]float64{"remote_disconnect": rate * 0.2}
					}
					return s
				}
			}),
			Want:   []Want{{Kind: diagnose.Failing}},
			Alerts: []Alert{{"", ofJob, "tenant"}}, Within: 15 * time.Minute, Lasts: true,
		},
	}
}

// HealthyVisitors are healthy fleets by an author who knows clusters, but not the limits of the rules.
func HealthyVisitors() []Fleet { //nolint:funlen,gocognit,gocyclo,maintidx // a table
	return []Fleet{
		{
			Name: "a benchmark beside production", Length: 80 * time.Minute,
			Why: "An engineer runs nixlbench, one size after the other, on two hosts of production, whose transfers take a quarter longer meanwhile.",
			Members: append(on("chat", 8, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 26*time.Minute, 0.3, at(8*mib, 45*gb, 20)), func(t time.Duration, s *State) {
					if i < 4 && during(t, 40*time.Minute, 20*time.Minute) {
						scale(s, 1.25, 1)
					}
				})
			}), on("nixlbench", 2, 1, func(int) func(time.Duration) State {
				return func(t time.Duration) State {
					if !during(t, 40*time.Minute, 21*time.Minute) {
						return State{Absent: true}
					}
					n := int((t - 40*time.Minute) / time.Minute)
					if n >= 20 {
						return State{Up: diagnose.No}
					}
					l := at(4*kib<<min(n, 18), 45*gb, 1)
					l.Rate = 0.9 / l.Time.Seconds()
					return State{Loads: []Load{l}}
				}
			})...),
		},
		{
			Name: "autoscaling in steps", Length: 110 * time.Minute,
			Why: "The load grows and falls; the autoscaler goes from 4 to 12 agents in steps, and back. Just before each step, transfers queue a little.",
			Members: on("steps", 12, 2, func(i int) func(time.Duration) State {
				count := func(t time.Duration) int {
					switch {
					case t < 30*time.Minute, t >= 100*time.Minute:
						return 4
					case t < 45*time.Minute, t >= 92*time.Minute:
						return 6
					case t < 60*time.Minute, t >= 84*time.Minute:
						return 8
					}
					return 12
				}
				return func(t time.Duration) State {
					load := 4 + 8*ramp(t, 20*time.Minute, 40*time.Minute) - 8.5*ramp(t, 78*time.Minute, 24*time.Minute)
					n := count(t)
					switch {
					case i < n:
						per := load / float64(n)
						return traffic(i, 13*time.Minute, 0.1, slowed(at(16*mib, 45*gb, 10*per), max(1, per)))(t)
					case t > 80*time.Minute && i < count(t-90*time.Second):
						return State{} // drained
					case t > 80*time.Minute && i < count(t-4*time.Minute):
						return State{Up: diagnose.No}
					}
					return State{Absent: true}
				}
			}),
		},
		{
			Name: "three generations of hardware, with load to match", Length: 75 * time.Minute,
			Why: "A job has A100s with 200 Gbit/s, H100s with 400 and B200s with 800. The router knows, and gives each its share.",
			Members: on("mixed", 12, 4, func(i int) func(time.Duration) State {
				gen := []float64{1, 2, 4}[i/4]
				return traffic(i, 37*time.Minute, 0.4, at(32*mib, 22*gb*gen, 4*gen))
			}),
		},
		{
			Name: "a drained node, whose pods move to another one", Length: 70 * time.Minute,
			Why: "A node is drained for new firmware. Its pods, which keep their names, start on a spare node four minutes later.",
			Members: func() []Member {
				list := on("stateful", 12, 4, func(i int) func(time.Duration) State {
					return with(traffic(i, 30*time.Minute, 0.2, reads(at(24*mib, 45*gb, 8))), func(t time.Duration, s *State) {
						gone := ramp(t, Begin, time.Minute) - ramp(t, Begin+5*time.Minute, 4*time.Minute)
						if i < 8 {
							scale(s, 1, 1+gone/2)
							return
						}
						scale(s, 1, 1-ramp(t, Begin, time.Minute))
						switch {
						case t >= Begin+3*time.Minute:
							*s = State{Absent: true}
						case t >= Begin+90*time.Second:
							*s = State{Up: diagnose.No}
						}
					})
				})
				for i := 8; i < 12; i++ {
					m := list[i]
					m.Host = "gpu-spare"
					m.Do = with(traffic(i+50, 30*time.Minute, 0.2, reads(at(24*mib, 45*gb, 8))), func(t time.Duration, s *State) {
						scale(s, 1+0.5*(1-ramp(t, Begin+5*time.Minute, 2*time.Minute)), ramp(t, Begin+5*time.Minute, 4*time.Minute))
						s.Absent = t < Begin+4*time.Minute
					})
					list = append(list, m)
				}
				return list
			}(),
		},
		{
			Name: "a prefix cache that is flushed on purpose", Length: 80 * time.Minute,
			Why: "A new system prompt makes all cached prefixes worthless, so the operator flushes the cache. Reads come back within a quarter of an hour.",
			Members: on("prefixes", 8, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 34*time.Minute, 0.25, reads(at(8*mib, 44*gb, 15)), at(8*mib, 44*gb, 6)), func(t time.Duration, s *State) {
					if t >= Begin {
						cold := math.Exp(-float64(t-Begin) / float64(6*time.Minute))
						s.Loads[0].Rate *= 1 - 0.98*cold
						s.Loads[1].Rate *= 1 + 1.2*cold
					}
				})
			}),
		},
		{
			Name: "a holiday", Length: 90 * time.Minute,
			Why: "Nearly nobody works. Each agent has a transfer every two minutes or so, at random times, of any size.",
			Members: on("holiday", 8, 2, func(i int) func(time.Duration) State {
				return func(t time.Duration) State {
					if chance(i, t/Every) > 0.13 {
						return State{}
					}
					return State{Loads: []Load{at(mib<<uint(chance(i+99, t/Every)*7), 45*gb, 1./15)}}
				}
			}),
		},
		{
			Name: "short prompts stay where they are", Length: 75 * time.Minute,
			Why: "The router stops sending short prompts to remote prefill workers: it isn't worth it. Nine of ten transfers, the small ones, are gone within two minutes.",
			Members: on("disaggregated", 10, 5, func(i int) func(time.Duration) State {
				return with(traffic(i, 28*time.Minute, 0.3, at(2*mib, 42*gb, 40), at(48*mib, 45*gb, 4)), func(t time.Duration, s *State) {
					s.Loads[0].Rate *= 1 - ramp(t, Begin, 2*time.Minute)
				})
			}),
		},
		{
			Name: "users with very long contexts arrive", Length: 90 * time.Minute,
			Why: "A third of the conversations becomes very long within 40 minutes. Their transfers are 32 times as large, and take 32 times as long.",
			Members: on("long-context", 6, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 41*time.Minute, 0.2, at(16*mib, 45*gb, 10), at(512*mib, 45*gb, 4)), func(t time.Duration, s *State) {
					s.Loads[1].Rate *= ramp(t, 35*time.Minute, 40*time.Minute) * jitter(i+300, t, 0.6)
				})
			}),
		},
		{
			Name: "new replicas fetch their weights from neighbors", Length: 70 * time.Minute, Warns: true,
			Why: "Four new agents read 1 GiB at a time from neighbors for four minutes. Their hosts' other transfers take a third longer meanwhile. " +
				"What follows is far smaller, so an agent may seem to have stopped, for a moment.",
			Members: on("fetching", 16, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 36*time.Minute, 0.25, at(16*mib, 45*gb, 12)), func(t time.Duration, s *State) {
					fetch := during(t, Begin+30*time.Second, 4*time.Minute)
					switch {
					case i < 4 && fetch:
						scale(s, 1.35, 1)
					case i >= 12:
						s.Absent = t < Begin
						scale(s, 1, ramp(t, Begin+5*time.Minute, 5*time.Minute))
						if fetch {
							s.Loads = append(s.Loads, reads(at(1024*mib, 12*gb, 3)))
						}
					}
				})
			}),
		},
		{
			Name: "checkpoints beside the usual traffic", Length: 90 * time.Minute,
			Why: "Every 12 minutes, each rank writes its checkpoint to storage for 40 seconds, one after the other, while transfers of caches go on.",
			Members: on("hybrid", 8, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 44*time.Minute, 0.2, at(4*mib, 44*gb, 25)), func(t time.Duration, s *State) {
					if during((t+12*time.Minute-time.Duration(i)*15*time.Second)%(12*time.Minute), 6*time.Minute, 45*time.Second) {
						s.Loads = append(s.Loads, at(256*mib, 3*gb, 6))
					}
				})
			}),
		},
		{
			Name: "tests of a failover, each for 30 seconds", Length: 90 * time.Minute,
			Why: "Every 20 minutes, the team cuts one agent off for 30 seconds, to see that requests go elsewhere. They do.",
			Members: on("tested", 8, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 25*time.Minute, 0.25, at(16*mib, 45*gb, 10)), func(t time.Duration, s *State) {
					n := int(t / (20 * time.Minute))
					if t < 30*time.Minute || !during(t%(20*time.Minute), 10*time.Minute, 30*time.Second) {
						return
					}
					if i == 2*n%8 {
						s.Errors = map[string]float64{"remote_disconnect": 0.5 * s.Loads[0].Rate}
						s.Loads = nil
					} else {
						scale(s, 1, 1.1)
					}
				})
			}),
		},
		{
			Name: "the losing branches of a search are canceled", Length: 80 * time.Minute,
			Why: "The client asks for four answers and keeps the first good one. A third of all transfers is canceled, and always was.",
			Members: on("best-of-n", 6, 3, func(i int) func(time.Duration) State {
				return with(traffic(i, 20*time.Minute, 0.4, reads(at(8*mib, 45*gb, 14))), func(t time.Duration, s *State) {
					s.Errors = map[string]float64{"canceled": 0.5 * s.Loads[0].Rate * jitter(i+40, t, 0.4)}
				})
			}),
		},
		{
			Name: "a limit on power for 25 minutes", Length: 85 * time.Minute,
			Why: "The data center has to save power for 25 minutes, as agreed. Everything has two thirds of its load and takes a sixth longer.",
			Members: on("capped", 16, 8, func(i int) func(time.Duration) State {
				return with(traffic(i, 38*time.Minute, 0.2, at(32*mib, 45*gb, 9)), func(t time.Duration, s *State) {
					if during(t, Begin, 25*time.Minute) {
						scale(s, 1.18, 0.67)
					}
				})
			}),
		},
		{
			Name: "new firmware for the NICs, one host after the other", Length: 80 * time.Minute, Warns: true,
			Why: "Planned: each host has one of its two ports for two minutes. It's slower meanwhile, which may be said, but wakes nobody.",
			Members: on("firmware", 16, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 33*time.Minute, 0.25, at(64*mib, 90*gb, 6)), func(t time.Duration, s *State) {
					if during(t, Begin+time.Duration(i/2)*3*time.Minute, 2*time.Minute) {
						scale(s, 2, 1)
					}
				})
			}),
		},
		{
			Name: "a migration from a cold tier", Length: 80 * time.Minute, Warns: true,
			Why: "Old caches move from the object store to disks, in the background, for half an hour. Such transfers are slow, and nobody waits for them. " +
				"Totals can't tell them from a slow storage, so a warning is fair.",
			Members: on("migrated", 6, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 29*time.Minute, 0.2, at(4*mib, 45*gb, 30)), func(t time.Duration, s *State) {
					if during(t, Begin, 30*time.Minute) {
						s.Loads = append(s.Loads, reads(scaled(at(64*mib, 0.5*gb, 0.8), jitter(i+60, t, 0.3))))
					}
				})
			}),
		},
		{
			Name: "speculative decoding is turned on", Length: 80 * time.Minute, Warns: true,
			Why: "A draft model proposes tokens from now on, so there are many small transfers of its caches besides those of the model. One pod after the other gets it. " +
				"That transfers are far smaller than before is true, and a warning is fair.",
			Members: on("speculative", 8, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 35*time.Minute, 0.25, at(8*mib, 45*gb, 15)), func(t time.Duration, s *State) {
					out := Begin + time.Duration(i)*90*time.Second
					s.Restarted = t == out
					if t >= out {
						s.Loads = append(s.Loads, scaled(at(64*kib, 40*gb, 300), jitter(i+80, t, 0.3)))
					}
				})
			}),
		},
		{
			Name: "a worker is stopped for a dump of its memory", Length: 65 * time.Minute,
			Why: "An engineer takes a worker out of the router and dumps its memory, which stops it for 50 seconds. Others have its load for two minutes.",
			Members: on("dumped", 7, 7, func(i int) func(time.Duration) State {
				return with(traffic(i, 23*time.Minute, 0.2, reads(at(32*mib, 45*gb, 7))), func(t time.Duration, s *State) {
					if !during(t, Begin, 2*time.Minute) {
						return
					}
					if i == 3 {
						s.Loads = nil
					} else {
						scale(s, 1, 7./6)
					}
				})
			}),
		},
		{
			Name: "a pool of buffers that grows to its limit", Length: 3 * time.Hour, Warns: true,
			Why: "Each agent registers 1 GiB more when it needs it, and keeps it, up to 24 GiB. That takes an hour, and then it's over. " +
				"Until then, it has the shape of a leak, so a warning is fair.",
			Members: on("pooled", 4, 4, func(i int) func(time.Duration) State {
				return with(traffic(i, 60*time.Minute, 0.3, at(4*mib, 45*gb, 20)), func(t time.Duration, s *State) {
					s.Memory = min(24, 8+uint64(max(0, t-10*time.Minute-time.Duration(i)*70*time.Second)/(4*time.Minute))) << 30
				})
			}),
		},
		{
			Name: "reports every minute instead of every 15 seconds", Length: 75 * time.Minute, Warns: true,
			Why: "The operator saves money: from now on, metrics arrive once a minute. Until the old interval is forgotten, that looks like gaps.",
			Members: on("saving", 6, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 24*time.Minute, 0.3, at(8*mib, 45*gb, 20)), func(t time.Duration, s *State) {
					s.Absent = t >= Begin && t%time.Minute != 0
				})
			}),
		},
		{
			Name: "adapters are loaded when a request needs them", Length: 80 * time.Minute, Warns: true,
			Why: "Each agent loads an adapter of 200 MiB from the object store now and then, at any time. That takes most of a second, and always has. " +
				"A few such transfers outweigh thousands of short ones in a mean over both directions, so a warning may come.",
			Members: on("adapters", 8, 2, func(i int) func(time.Duration) State {
				return with(traffic(i, 31*time.Minute, 0.3, at(2*mib, 42*gb, 50)), func(t time.Duration, s *State) {
					if chance(i+11, t/time.Minute) < 1./6 {
						s.Loads = append(s.Loads, reads(at(200*mib, 0.3*gb, 0.05)))
					}
				})
			}),
		},
	}
}
