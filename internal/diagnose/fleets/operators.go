// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"fmt"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// partial returns incidents in which an agent still does something.
func partial() []Fleet {
	fine, large := always(usual()), Load{Size: 512 * mib, Time: 200 * time.Millisecond, Post: 100 * time.Microsecond, Rate: 1.0 / 60}
	both := always(usual(), reads(scaled(usual(), 0.1)))
	return []Fleet{
		{
			Name: "operations of seven of eight agents are canceled, because a peer hangs", Want: wants(diagnose.SomeFail, "decode-1", "decode-2", "decode-3", "decode-4", "decode-5", "decode-6", "decode-7"),
			Alerts: agents("NIXLAgentErrors", 1, 2, 3, 4, 5, 6, 7), Within: 12 * time.Minute, Length: Begin + 12*time.Minute,
			Members: some(8, []int{0}, since(fine, func(_ time.Duration, s *State) {
				s.Loads, s.Errors = []Load{scaled(usual(), 0.2)}, map[string]float64{diagnose.Canceled: 10}
			}), fine),
		},
		{
			Name: "few large transfers become 15 times slower", Alerts: agents("NIXLSlower", 1), Length: 80 * time.Minute, Within: 25 * time.Minute,
			Members: some(3, []int{1}, always(large), then(always(large), always(slowed(large, 15)))),
		},
		{
			Name: "few large transfers hang", Alerts: agents("NIXLAgentStalled", 1), Length: 2 * time.Hour, Within: 30 * time.Minute, Lasts: true,
			Members: some(4, []int{1}, always(large), then(always(large), always())),
		},
		{
			Name: "an agent that hangs but for heartbeats", Want: wants(diagnose.Stalled, "decode-2"), Alerts: agents("NIXLAgentStalled", 2), Critical: true, Lasts: true, Length: 100 * time.Minute,
			Members: some(6, []int{2}, always(usual(), heartbeat()), then(always(usual(), heartbeat()), always(heartbeat()))),
		},
		{
			Name: "all agents hang but for heartbeats", Want: []Want{{diagnose.JobStalled, ""}}, Alerts: decode("NIXLJobStalled"), Critical: true, Requests: 5, Lasts: true, Length: 100 * time.Minute,
			Members: same("decode", 6, then(always(usual(), heartbeat()), always(heartbeat()))),
		},
		{
			Name: "a tenth of the transfers of an agent are reads, at 40% of the speed", Alerts: agents("NIXLStraggler", 1), Want: wants(diagnose.Straggler, "decode-1"),
			Members: some(6, []int{1}, both, then(both, always(usual(), slowed(reads(scaled(usual(), 0.1)), 2.5)))),
		},
		{
			Name: "all reads of a pool stop, and its writes go on", Want: []Want{{diagnose.JobStalled, ""}}, Alerts: decode("NIXLJobStalled"),
			Members: same("decode", 5, then(always(usual(), reads(usual())), fine)),
		},
		{
			Name: "75 times as many tiny transfers, with fewer bytes", Alerts: decode("NIXLSmallerTransfers"),
			Members: same("decode", 4, then(always(scaled(usual(), 0.2)), always(at(8*kib, 10*gb, 450)))),
		},
		{
			Name: "a fabric at a fifth at the daily peak", Want: []Want{{diagnose.JobSlower, ""}}, Alerts: decode("NIXLSlower"),
			Members: same("decode", 6, func(t time.Duration) State {
				l := scaled(usual(), 1+min(1, max(0, (t-Begin+20*time.Minute).Minutes()/15)))
				if t >= Begin {
					l = slowed(l, 5)
				}
				return State{Loads: []Load{l}}
			}),
		},
	}
}

// lasting returns incidents whose alerts must last as long as they do.
func lasting() []Fleet {
	fine := always(usual())
	leak := func(t time.Duration, s *State) {
		s.Memory = uint64(64<<30 + (t%(7*time.Minute)).Seconds()*(1<<24))
		if t >= Begin {
			s.Memory += uint64((t - Begin).Minutes() * (1 << 28))
		}
	}
	// backOff is when a container is restarted: after 10 s, 20 s, 40 s, and at last every five minutes.
	backOff, wait := []time.Duration{0}, 10*time.Second
	for range 30 {
		backOff, wait = append(backOff, backOff[len(backOff)-1]+15*time.Second+wait.Round(Every)), min(2*wait, 5*time.Minute)
	}
	return []Fleet{
		{
			Name: "a leak beside memory that comes and goes", Alerts: agents("NIXLMemoryGrows", 2), Length: 150 * time.Minute, Within: 100 * time.Minute,
			Members: some(4, []int{2}, fine, with(fine, leak)),
		},
		{
			Name: "recreated pods that never transfer", Want: []Want{{diagnose.JobStalled, ""}}, Alerts: decode("NIXLJobStalled"), Critical: true, Requests: 4, Lasts: true, Length: 90 * time.Minute,
			Members: append(same("decode", 4, since(fine, func(t time.Duration, s *State) {
				if *s = (State{Restart: t == time.Minute}); t < time.Minute {
					s.Up = diagnose.No
				}
			})), same("frontend", 3, fine)...),
		},
		{
			Name: "a crash loop with back-off", Alerts: agents("NIXLAgentCrashLoop", 2), Lasts: true, Length: 2 * time.Hour,
			Members: some(4, []int{2}, fine, since(fine, func(t time.Duration, s *State) {
				*s = State{Up: diagnose.No}
				for _, begin := range backOff {
					if during(t, begin, 15*time.Second) {
						*s = State{Restart: true}
					}
				}
			})),
		},
		{
			Name: "two of eight agents hang while the load falls", Want: wants(diagnose.Stalled, "decode-1", "decode-5"), Alerts: agents("NIXLAgentStalled", 1, 5), Critical: true,
			Members: members("decode", 8, func(i int) func(time.Duration) State {
				return func(t time.Duration) State {
					if t >= Begin && (i == 1 || i == 5) {
						return State{}
					}
					return State{Loads: []Load{scaled(usual(), 1-0.28*(t-Begin).Hours())}}
				}
			}),
		},
	}
}

// drained returns the agents of a job. Some are drained at Begin, while the load changes by a share per hour. The others
// take over what they did. They exit after some minutes.
func drained(n, some int, trend float64, stay time.Duration) []Member {
	return members("decode", n, func(i int) func(time.Duration) State {
		return func(t time.Duration) State {
			l := scaled(usual(), 1+trend*(t-Begin).Hours())
			switch {
			case t >= Begin+stay && i < some:
				return State{Up: diagnose.No}
			case t >= Begin && i < some:
				return State{}
			case t >= Begin:
				l.Rate *= float64(n) / float64(n-some)
			}
			return State{Loads: []Load{l}}
		}
	})
}

// scaledDown returns healthy fleets that are scaled down while their load changes.
func scaledDown() (list []Fleet) {
	for _, c := range []struct {
		agents, drained int
		trend           float64
	}{{8, 1, -0.5}, {8, 1, -0.28}, {8, 2, -0.28}, {8, 1, 0}, {8, 1, 0.25}, {8, 1, 0.5}, {4, 1, -0.5}, {32, 1, -0.05}, {32, 4, -0.05}, {32, 4, -0.5}} {
		list = append(list, Fleet{
			Name: fmt.Sprintf("%d of %d agents drained, load %+.0f%% per hour", c.drained, c.agents, 100*c.trend), Warns: true, Length: 70 * time.Minute,
			Members: drained(c.agents, c.drained, c.trend, 15*time.Minute),
		})
	}
	return list
}

// operated returns healthy fleets that an operator or an autoscaler changes.
func operated() []Fleet { //nolint:funlen // a table
	fine := always(usual())
	large := Load{Size: 512 * mib, Time: 200 * time.Millisecond, Post: 100 * time.Microsecond}
	return []Fleet{
		{Name: "sessions that stick to agents, and an agent without any for a while", Warns: true, Length: 75 * time.Minute, Members: members("decode", 6, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				sessions := float64(1 + (i*7+int(t/(4*time.Minute))*5)%6)
				if i == 3 && during(t, Begin, 12*time.Minute) {
					sessions = 0
				}
				return State{Loads: []Load{scaled(usual(), sessions/3)}}
			}
		})},
		{Name: "sessions that stick to agents, spread evenly by chance when an agent has none", Warns: true, Length: 75 * time.Minute, Members: members("decode", 6, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				sessions := []float64{1, 2, 6, 2, 6, 1}[(i+int(t/(5*time.Minute)))%6]
				switch {
				case i == 3 && during(t, Begin, 15*time.Minute):
					sessions = 0
				case during(t, Begin-3*time.Minute, 18*time.Minute):
					sessions = 3
				}
				return State{Loads: []Load{scaled(usual(), sessions/3)}}
			}
		})},
		{Name: "a planner that changes the role of two agents", Warns: true, Length: 70 * time.Minute, Members: members("nixl", 8, func(i int) func(time.Duration) State {
			if i < 2 {
				return then(fine, always(reads(at(1*mib, 30*gb, 100))))
			}
			return then(fine, always(scaled(usual(), 8./6)))
		})},
		{Name: "an autoscaler adds and removes the only agent of a host", Length: 2 * time.Hour, Members: func() []Member {
			list := same("decode", 4, fine)
			list[3].Host, list[3].Do = "extra", func(t time.Duration) State {
				switch in := t % (20 * time.Minute); {
				case in < 12*time.Minute:
					return State{Loads: []Load{usual()}, Restart: in == 0}
				case in < 13*time.Minute:
					return State{Up: diagnose.No}
				}
				return State{Absent: true}
			}
			return list
		}()},
		{Name: "metrics of all hosts are lost for three minutes", Length: 75 * time.Minute, Members: same("decode", 6, with(fine, func(t time.Duration, s *State) {
			s.Absent = during(t, Begin, 150*time.Second)
		}))},
		{Name: "memory that is registered as the load grows", Length: 2 * time.Hour, Members: same("decode", 4, func(t time.Duration) State {
			grown := 1 + max(0, (t-Begin).Hours())
			return State{Loads: []Load{scaled(usual(), grown)}, Memory: uint64(grown * (1 << 35))}
		})},
		{Name: "passive peers that restart one after the other", Warns: true, Length: 80 * time.Minute, Members: same("prefill", 4, since(fine, func(t time.Duration, s *State) {
			if t < 32*time.Minute && t%(4*time.Minute) < 30*time.Second {
				s.Errors = map[string]float64{"backend": 2}
			}
		}))},
		{Name: "clients that cancel most requests for three minutes", Members: same("decode", 4, with(fine, func(t time.Duration, s *State) {
			if during(t, Begin, 3*time.Minute) {
				s.Errors = map[string]float64{diagnose.Canceled: 45}
			}
		}))},
		{Name: "clients that cancel a seventh of all requests", Members: same("decode", 4, with(fine, func(_ time.Duration, s *State) {
			s.Errors = map[string]float64{diagnose.Canceled: 5}
		}))},
		{Name: "few large transfers of different sizes", Length: 2 * time.Hour, Members: members("storage", 4, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				factor := math.Pow(2, float64((i+int(t/(5*time.Minute)))%4))
				return State{Loads: []Load{{Size: uint64(factor * 64 * mib), Time: time.Duration(factor * 25 * float64(time.Millisecond)), Post: large.Post, Rate: 1.0 / 40}}}
			}
		})},
		{Name: "few large transfers, and pauses of ten minutes", Length: 2 * time.Hour, Members: same("storage", 4, func(t time.Duration) State {
			l := large
			if l.Rate = 1.0 / 60; t%(30*time.Minute) > 20*time.Minute {
				l.Rate = 0
			}
			return State{Loads: []Load{l}}
		})},
		{Name: "pods that are recreated at night, without requests", Length: 80 * time.Minute, Members: same("decode", 4, since(fine, func(t time.Duration, s *State) {
			if *s = (State{Restart: t == time.Minute}); t < time.Minute {
				s.Up = diagnose.No
			}
		}))},
		{Name: "three restarts of an agent in half an hour", Length: 90 * time.Minute, Members: except("decode", 4, 1, fine, since(fine, func(t time.Duration, s *State) {
			s.Restarted = t < 31*time.Minute && t%(15*time.Minute) == 0
		}))},
	}
}
