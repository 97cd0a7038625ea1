// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"fmt"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Incidents returns fleets with a problem that begins at Begin and must be found by Found.
func Incidents() []Fleet {
	list := slices.Concat(slow(), stalled(), failing(), changed(), telemetry(), untuned(), untunedSecond(), untunedThird(), partial(), lasting(), reported())
	for i := range list {
		if list[i].Length == 0 {
			list[i].Length = Found
		}
	}
	return list
}

// agents returns what an alert must name, for agents of a job.
func agents(alert string, numbers ...int) (list []Alert) {
	for _, n := range numbers {
		list = append(list, Alert{alert, "nixl_agent_name", fmt.Sprintf("decode-%d", n)})
	}
	return list
}

func decode(alert string) []Alert { return []Alert{{alert, "service_name", "decode"}} }

// wants returns findings of one kind.
func wants(kind diagnose.Kind, names ...string) (list []Want) {
	for _, n := range names {
		list = append(list, Want{kind, n})
	}
	return list
}

// some returns agents, including some that do something else.
func some(n int, which []int, all, these func(time.Duration) State) []Member {
	return members("decode", n, func(i int) func(time.Duration) State {
		if slices.Contains(which, i) {
			return these
		}
		return all
	})
}

// later does something else once incidents begin.
func later(l Load) func(time.Duration) State { return then(always(usual()), always(l)) }

// slow returns fleets with agents that are slower than their peers.
func slow() []Fleet {
	fine := always(usual())
	blocks := at(128*kib, 45*gb, 200)
	return []Fleet{
		{
			Name: "an agent at a tenth of the speed", Want: wants(diagnose.Straggler, "decode-3"), Alerts: agents("NIXLStraggler", 3),
			Members: some(6, []int{3}, fine, later(slowed(usual(), 10))),
		},
		{
			Name: "a link at half speed", Want: wants(diagnose.Straggler, "decode-1"), Alerts: agents("NIXLStraggler", 1),
			Members: some(4, []int{1}, fine, later(at(4*mib, 22.5*gb, 30))),
		},
		{
			Name: "a link that was at half speed from the start", Want: wants(diagnose.Straggler, "decode-1"), Alerts: agents("NIXLStraggler", 1),
			Members: some(8, []int{1}, fine, always(at(4*mib, 22.5*gb, 15))),
		},
		{
			// Its own speed would lower the median from 45 to 40.5 GB/s, and its limit with it.
			Name: "an agent whose peers differ", Want: wants(diagnose.Straggler, "decode-2"), Alerts: agents("NIXLStraggler", 2),
			Members: members("decode", 4, func(i int) func(time.Duration) State {
				return always(at(4*mib, []float64{45, 36, 24, 45}[i]*gb, 15))
			}),
		},
		{
			Name: "two slow agents of sixteen", Want: wants(diagnose.Straggler, "decode-2", "decode-7"), Alerts: agents("NIXLStraggler", 2, 7),
			Members: some(16, []int{2, 7}, fine, later(slowed(usual(), 1/0.44))),
		},
		{
			Name: "a slow agent among those with small blocks", Want: wants(diagnose.Straggler, "decode-9"), Alerts: agents("NIXLStraggler", 9),
			Members: members("decode", 10, func(i int) func(time.Duration) State {
				switch {
				case i < 5:
					return fine
				case i == 9:
					return then(always(blocks), always(slowed(blocks, 4)))
				}
				return always(blocks)
			}),
		},
		{
			Name: "a slow agent of 300", Want: wants(diagnose.Straggler, "decode-150"), Alerts: agents("NIXLStraggler", 150),
			Members: some(300, []int{150}, fine, later(slowed(usual(), 3))),
		},
		{
			Name: "two of seven agents at a fifth, from the start", Want: wants(diagnose.Straggler, "decode-1", "decode-4"), Alerts: agents("NIXLStraggler", 1, 4),
			Members: some(7, []int{1, 4}, fine, always(slowed(usual(), 5))),
		},
		{
			Name: "one of three agents at a tenth, from the start", Want: wants(diagnose.Straggler, "decode-2"), Alerts: agents("NIXLStraggler", 2),
			Members: some(3, []int{2}, fine, always(slowed(usual(), 10))),
		},
		{
			Name: "half of the fleet at a fifth, from the start", Want: wants(diagnose.Straggler, "decode-0", "decode-2", "decode-4"), Alerts: agents("NIXLStraggler", 0, 2, 4),
			Members: some(6, []int{0, 2, 4}, fine, always(slowed(usual(), 5))),
		},
		{
			Name: "a host at 60%", Want: wants(diagnose.Straggler, "decode-0", "decode-4", "decode-8", "decode-12"), Alerts: agents("NIXLStraggler", 0, 4, 8, 12),
			Members: some(16, []int{0, 4, 8, 12}, fine, later(slowed(usual(), 1/0.6))),
		},
		{
			Name: "the fleet falls back to TCP", Want: []Want{{diagnose.JobSlower, ""}}, Alerts: decode("NIXLSlower"),
			Members: some(6, nil, later(slowed(usual(), 20)), nil),
		},
		{
			Name: "one of two agents becomes slow", Want: wants(diagnose.Slower, "decode-1"), Alerts: agents("NIXLSlower", 1),
			Members: some(2, []int{1}, fine, later(slowed(usual(), 4))),
		},
		{
			Name: "new pods are slow", Alerts: []Alert{{"NIXLSlower", "k8s_pod_name", "decode-1-0"}, {"NIXLSlower", "k8s_pod_name", "decode-1-1"}},
			Members: rollout(3, Begin, func() Load { return slowed(usual(), 4) }),
		},
		{
			Name: "a few transfers of an agent take very long", Want: wants(diagnose.Straggler, "decode-1"), Alerts: agents("NIXLStraggler", 1),
			Members: some(6, []int{1}, fine, then(fine, always(usual(), Load{Size: 4 * mib, Time: 200 * time.Millisecond, Post: 4 * time.Microsecond, Rate: 0.15}))),
		},
		{
			Name: "reads of an agent are slow, its writes aren't", Alerts: agents("NIXLStraggler", 1),
			Members: some(6, []int{1}, always(usual(), reads(usual())), then(always(usual(), reads(usual())), always(usual(), slowed(reads(usual()), 2.2)))),
		},
	}
}

// stalled returns fleets with agents that hang.
func stalled() []Fleet {
	fine, hangs := always(usual()), then(always(usual()), always())
	both := always(usual(), reads(usual()))
	busier := usual()
	busier.Rate *= 1.5
	return []Fleet{
		{
			Name: "an agent that hangs", Want: wants(diagnose.Stalled, "decode-2"), Alerts: agents("NIXLAgentStalled", 2), Critical: true,
			Members: some(4, []int{2}, fine, hangs),
		},
		{
			Name: "an agent that hangs, and whose peers take over its load", Want: wants(diagnose.Stalled, "decode-2"), Alerts: agents("NIXLAgentStalled", 2),
			Members: some(3, []int{2}, later(busier), hangs),
		},
		{
			Name: "all agents hang with requests", Want: []Want{{diagnose.JobStalled, ""}}, Alerts: decode("NIXLJobStalled"), Critical: true, Requests: 12,
			Members: append(some(5, nil, hangs, nil), same("prefill", 3, fine)...),
		},
		{
			Name: "the reads of an agent hang", Alerts: agents("NIXLAgentStalled", 2),
			Members: some(4, []int{2}, both, then(both, always(usual()))),
		},
	}
}

// failing returns fleets with operations that fail.
func failing() []Fleet {
	fine := always(usual())
	errors := func(rate float64, when func(time.Duration) bool) func(time.Duration) State {
		return since(fine, func(t time.Duration, s *State) {
			if when(t) {
				s.Errors = map[string]float64{"backend": rate}
			}
		})
	}
	all := func(time.Duration) bool { return true }
	return []Fleet{
		{
			Name: "7% of an agent's operations fail", Want: wants(diagnose.SomeFail, "decode-1"), Alerts: agents("NIXLAgentErrors", 1),
			Members: some(4, []int{1}, fine, errors(2.3, all)),
		},
		{
			Name: "9% of all operations fail", Want: wants(diagnose.SomeFail, "decode-0", "decode-1", "decode-2"), Alerts: agents("NIXLAgentErrors", 0, 1, 2),
			Members: some(3, nil, errors(3, all), nil),
		},
		{
			Name: "80% fail in one minute of six", Alerts: agents("NIXLAgentErrors", 1),
			Members: some(4, []int{1}, fine, errors(120, func(t time.Duration) bool { return t%(6*time.Minute) < time.Minute })),
		},
		{
			Name: "few operations, which all fail", Long: true, Want: []Want{{diagnose.SomeFail, "decode-1"}}, Alerts: agents("NIXLAgentErrors", 1),
			Members: some(4, []int{1}, fine, with(always(), func(_ time.Duration, s *State) { s.Errors = map[string]float64{"backend": 0.025} })),
		},
		{
			Name: "a fifth of an agent's operations fails", Want: []Want{{diagnose.Failing, ""}}, Alerts: append(decode("NIXLErrors"), agents("NIXLAgentErrors", 1)...), Critical: true,
			Members: some(4, []int{1}, fine, errors(8, all)),
		},
		{
			Name: "a peer doesn't come back", Want: []Want{{diagnose.Failing, ""}}, Alerts: decode("NIXLErrors"), Critical: true,
			Members: some(4, nil, with(fine, func(t time.Duration, s *State) {
				if t >= Begin {
					s.Errors = map[string]float64{"backend": 20, diagnose.Canceled: 3}
				}
			}), nil),
		},
	}
}

// changed returns fleets that use NIXL in another way than before.
func changed() []Fleet {
	return []Fleet{
		{
			Name: "ten times as many transfers of a tenth", Alerts: decode("NIXLSmallerTransfers"),
			Members: some(4, nil, later(Load{Size: 4 * mib / 10, Time: 40 * time.Microsecond, Post: 4 * time.Microsecond, Rate: 300}), nil),
		},
		{
			Name: "registered memory that only grows", Alerts: agents("NIXLMemoryGrows", 2),
			Members: some(4, []int{2}, always(usual()), with(always(usual()), func(t time.Duration, s *State) {
				s.Memory = 64 << 30
				if t >= Begin {
					s.Memory += uint64((t - Begin).Minutes() * (1 << 30))
				}
			})),
		},
		{
			Name: "posting takes most of the time", Want: wants(diagnose.PostBound, "decode-0"),
			Members: some(3, []int{0}, always(usual()), later(Load{Size: 4 * mib, Time: 150 * time.Microsecond, Post: 110 * time.Microsecond, Rate: 30})),
		},
	}
}

// telemetry returns fleets with agents that exit, or whose telemetry is missing or incomplete.
func telemetry() []Fleet {
	fine := always(usual())
	change := func(change func(t time.Duration, s *State)) func(time.Duration) State { return since(fine, change) }
	absent := change(func(_ time.Duration, s *State) { s.Absent = true })
	return []Fleet{
		{
			Name: "a ring that is too small", Want: wants(diagnose.EventsLost, "decode-0"), Alerts: agents("NIXLEventsLost", 0),
			Members: some(2, []int{0}, fine, change(func(_ time.Duration, s *State) { s.Full, s.Fill = 0.2, 1 })),
		},
		{
			Name: "another consumer", Want: wants(diagnose.EventsTaken, "decode-1"), Alerts: agents("NIXLEventsTaken", 1),
			Members: some(2, []int{1}, fine, change(func(_ time.Duration, s *State) { s.Foreign = 1 })),
		},
		{
			Name: "another consumer takes all events", Want: wants(diagnose.EventsTaken, "decode-1"), Alerts: agents("NIXLEventsTaken", 1),
			Members: some(4, []int{1}, fine, change(func(_ time.Duration, s *State) { s.Loads, s.Foreign = nil, 1 })),
		},
		{
			Name: "an agent in a crash loop", Alerts: agents("NIXLAgentCrashLoop", 2),
			Members: some(4, []int{2}, fine, change(func(t time.Duration, s *State) {
				if t%(2*time.Minute) >= 90*time.Second {
					s.Loads, s.Up = nil, diagnose.No
				}
				s.Restarted = t > 0 && t%(2*time.Minute) == 0
			})),
		},
		{
			Name: "metrics of an agent stop", Want: wants(diagnose.Missing, "decode-2"), Alerts: agents("NIXLAgentMissing", 2),
			Members: some(4, []int{2}, fine, absent),
		},
		{
			Name: "a node is gone", Want: []Want{{diagnose.Missing, ""}}, Alerts: []Alert{{"NIXLCollectorGone", "host_name", "node-1"}}, Within: 5 * time.Minute,
			Members: some(8, []int{1, 3, 5, 7}, fine, absent),
		},
		{
			Name: "nothing arrives anymore", Want: []Want{{diagnose.Missing, ""}, {diagnose.Missing, ""}}, Critical: true,
			Alerts:  []Alert{{"NIXLNoData", "service_name", ""}, {"NIXLCollectorGone", "host_name", "node-0"}, {"NIXLCollectorGone", "host_name", "node-1"}},
			Members: some(4, nil, absent, nil),
		},
		{
			Name: "a Collector without storage in a crash loop", Alerts: []Alert{{"NIXLCollectorCrashLoop", "host_name", "node-1"}},
			Members: some(8, []int{1, 3, 5, 7}, fine, change(func(t time.Duration, s *State) {
				s.Restart = t%(90*time.Second) == 0
				s.Absent = t%(90*time.Second) < 30*time.Second
			})),
		},
		{
			Name: "a Collector with storage in a crash loop", Alerts: []Alert{{"NIXLCollectorCrashLoop", "host_name", "node-1"}},
			Members: some(8, []int{1, 3, 5, 7}, fine, change(func(t time.Duration, s *State) { s.Absent = t%(2*time.Minute) < 75*time.Second })),
		},
		{
			Name: "the only agent of a host exits", Length: Begin + 5*time.Minute, Want: []Want{{diagnose.Gone, ""}},
			Members: func() []Member {
				list := some(4, []int{2}, fine, change(func(_ time.Duration, s *State) { *s = State{Up: diagnose.No} }))
				list[2].Host = "alone"
				return list
			}(),
		},
	}
}
