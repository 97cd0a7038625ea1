// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// untuned returns fleets that no limit was chosen for.
func untuned() []Fleet {
	fine := always(usual())
	storage := Load{Size: 512 * mib, Time: 800 * time.Millisecond, Post: 100 * time.Microsecond, Rate: 1}
	return []Fleet{
		{
			Name: "a slow rollout to half the speed", Alerts: []Alert{{"NIXLSlower", "k8s_pod_name", "decode-1-0"}, {"NIXLSlower", "k8s_pod_name", "decode-1-1"}, {"NIXLSlower", "k8s_pod_name", "decode-1-2"}},
			Members: rollout(6, Begin, func() Load { return slowed(usual(), 2) }),
		},
		{
			Name: "the storage of one host becomes slow", Want: wants(diagnose.Straggler, "storage-2"), Alerts: []Alert{{"NIXLStraggler", "nixl_agent_name", "storage-2"}},
			Members: append(except("storage", 5, 2, always(storage), then(always(storage), always(slowed(storage, 4)))), same("decode", 4, fine)...),
		},
		{
			Name: "both directions of one NIC at half speed", Want: wants(diagnose.Straggler, "decode-3"), Alerts: agents("NIXLStraggler", 3),
			Members: some(8, []int{3}, always(usual(), reads(usual())), then(always(usual(), reads(usual())), always(slowed(usual(), 2), slowed(reads(usual()), 2)))),
		},
		{
			Name: "half of the agents lose half of their speed", Want: wants(diagnose.Slower, "decode-0", "decode-2", "decode-4", "decode-6"), Alerts: agents("NIXLSlower", 0, 2, 4, 6),
			Members: some(8, []int{0, 2, 4, 6}, fine, later(slowed(usual(), 2))),
		},
		{
			Name: "a link that becomes slower by the minute", Want: wants(diagnose.Straggler, "decode-1"), Alerts: agents("NIXLStraggler", 1),
			Members: some(5, []int{1}, fine, func(t time.Duration) State {
				return State{Loads: []Load{slowed(usual(), 1+max(0, t-Begin).Minutes()/2)}}
			}),
		},
		{
			Name: "an agent in a fast loop of restarts", Alerts: agents("NIXLAgentCrashLoop", 2),
			Members: some(4, []int{2}, fine, since(fine, func(t time.Duration, s *State) { s.Restarted = t%(45*time.Second) == 0 })),
		},
		{
			Name: "an agent whose ring is new after each crash", Alerts: agents("NIXLAgentCrashLoop", 2),
			Members: some(4, []int{2}, fine, since(fine, func(t time.Duration, s *State) { s.Restart = t%(2*time.Minute) == 0 })),
		},
		{
			Name: "a crash loop of an agent with stores", Alerts: agents("NIXLAgentCrashLoop", 2),
			Members: some(4, []int{2}, fine, since(fine, func(t time.Duration, s *State) {
				if s.NewStore = t > 0 && t%(2*time.Minute) == 0; t%(2*time.Minute) >= 90*time.Second {
					s.Loads, s.Up = nil, diagnose.No
				}
			})),
		},
		{
			Name: "agents that hang one after the other", Want: wants(diagnose.Stalled, "decode-0", "decode-1", "decode-2"), Alerts: agents("NIXLAgentStalled", 0, 1, 2), Critical: true,
			Members: members("decode", 6, func(i int) func(time.Duration) State {
				return func(t time.Duration) State {
					if i < 3 && t >= Begin+time.Duration(i)*time.Minute {
						return State{}
					}
					return fine(t)
				}
			}),
		},
		{
			Name: "a few operations of each agent of a host fail", Want: wants(diagnose.SomeFail, "decode-1", "decode-3"), Alerts: agents("NIXLAgentErrors", 1, 3),
			Members: some(4, []int{1, 3}, fine, since(fine, func(_ time.Duration, s *State) { s.Errors = map[string]float64{"backend": 1} })),
		},
		{
			Name: "a ring that is nearly full", Want: wants(diagnose.NearlyFull, "decode-1"), Alerts: agents("NIXLRingNearlyFull", 1),
			Members: some(3, []int{1}, fine, since(fine, func(_ time.Duration, s *State) { s.Fill = 0.9 })),
		},
	}
}

// untunedSecond returns further incidents, written before the rules and tools had seen them.
func untunedSecond() []Fleet {
	fine := always(usual())
	small, large := reads(at(256*kib, 40*gb, 200)), reads(at(64*mib, 45*gb, 4))
	overloaded := usual()
	overloaded.Rate, overloaded.Time = 3, 10*overloaded.Time
	others := usual()
	others.Rate = 27
	return []Fleet{
		{
			Name: "a NIC that flaps", Want: wants(diagnose.Straggler, "decode-2", "decode-3"), Alerts: agents("NIXLStraggler", 2, 3),
			Members: onHosts(some(8, []int{2, 3}, fine, then(fine, func(t time.Duration) State {
				if t%(80*time.Second) >= time.Minute {
					return State{Loads: []Load{slowed(usual(), 8)}}
				}
				return fine(t)
			})), 2),
		},
		{
			Name: "only large reads of a host are slow", Want: wants(diagnose.Straggler, "decode-5"), Alerts: agents("NIXLStraggler", 5),
			Members: onHosts(some(6, []int{5}, always(small, large), then(always(small, large), always(small, slowed(large, 3)))), 1),
		},
		{
			Name: "one of ten peers is overloaded", Want: []Want{{diagnose.JobSlower, ""}}, Alerts: decode("NIXLSlower"),
			Members: some(6, nil, then(fine, always(others, overloaded)), nil),
		},
		{
			Name: "half of the new pods fall back to TCP while the load doubles", Alerts: agents("NIXLStraggler", 0, 2, 4),
			Members: some(6, []int{0, 2, 4}, then(fine, func(t time.Duration) State {
				l := usual()
				l.Rate *= 2
				return State{Loads: []Load{l}, Restart: t == Begin}
			}), then(fine, func(t time.Duration) State { return State{Loads: []Load{slowed(usual(), 20)}, Restart: t == Begin} })),
		},
		{
			Name: "new pods never transfer", Length: Found + 5*time.Minute, Within: 15 * time.Minute, Requests: 3,
			Want: []Want{{diagnose.JobStalled, ""}}, Alerts: decode("NIXLJobStalled"), Critical: true,
			Members: func() []Member {
				list := rollout(3, Begin, usual)
				for i := range list {
					if i%2 == 1 {
						list[i].Do = with(list[i].Do, func(_ time.Duration, s *State) { s.Loads = nil })
					}
				}
				return append(list, same("frontend", 3, fine)...)
			}(),
		},
	}
}

// untunedThird returns further incidents, written after those of untunedSecond, in the same way.
func untunedThird() []Fleet {
	fine := always(usual())
	both := always(usual(), reads(usual()))
	large, small := at(16*mib, 45*gb, 20), at(512*kib, 35*gb, 150)
	busier := usual()
	busier.Rate *= 1.5
	return []Fleet{
		{
			Name: "a NIC at half speed, but only for writes", Want: wants(diagnose.Straggler, "decode-2", "decode-3"), Alerts: agents("NIXLStraggler", 2, 3),
			Members: onHosts(some(8, []int{2, 3}, both, then(both, always(slowed(usual(), 2), reads(usual())))), 2),
		},
		{
			Name: "two of sixteen agents hang", Want: wants(diagnose.Stalled, "decode-4", "decode-11"), Alerts: agents("NIXLAgentStalled", 4, 11), Critical: true,
			Members: some(16, []int{4, 11}, fine, then(fine, always())),
		},
		{
			Name: "a canary with little load at a fifth of the speed", Want: wants(diagnose.Straggler, "decode-7"), Alerts: agents("NIXLStraggler", 7),
			Members: some(8, []int{7}, fine, func(t time.Duration) State {
				return State{Absent: t < Begin, Loads: []Load{slowed(at(4*mib, 45*gb, 3), 5)}}
			}),
		},
		{
			Name: "one of two models in a job becomes slow", Want: wants(diagnose.Slower, "decode-0", "decode-2", "decode-4", "decode-6"), Alerts: agents("NIXLSlower", 0, 2, 4, 6),
			Members: some(8, []int{0, 2, 4, 6}, always(small), then(always(large), always(slowed(large, 3)))),
		},
		{
			Name: "an agent hangs while its Collector restarts", Want: wants(diagnose.Stalled, "decode-3"), Alerts: agents("NIXLAgentStalled", 3), Critical: true,
			Members: members("decode", 6, func(i int) func(time.Duration) State {
				return func(t time.Duration) State {
					s := fine(t)
					if i == 3 && t >= Begin {
						s.Loads = nil
					}
					if i%2 == 1 {
						s.Absent, s.Restart = during(t, Begin, 45*time.Second), t == Begin+45*time.Second
					}
					return s
				}
			}),
		},
		{
			Name: "an agent restarts, and its load stays with its peers", Want: wants(diagnose.Stalled, "decode-0"), Alerts: agents("NIXLAgentStalled", 0),
			Members: some(3, []int{0}, later(busier), then(fine, func(t time.Duration) State { return State{Restarted: t == Begin} })),
		},
		{
			Name: "posting takes ten times as long on one host", Want: append(wants(diagnose.Straggler, "decode-2", "decode-3"), wants(diagnose.PostBound, "decode-2", "decode-3")...), Alerts: agents("NIXLStraggler", 2, 3),
			Members: onHosts(some(8, []int{2, 3}, fine, later(Load{Size: 4 * mib, Time: 350 * time.Microsecond, Post: 250 * time.Microsecond, Rate: 30})), 2),
		},
	}
}
