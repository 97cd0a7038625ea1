// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// reported returns incidents as operators report them.
func reported() []Fleet {
	fine := always(usual())
	storage := Load{Size: 256 * mib, Time: 100 * time.Millisecond, Post: 100 * time.Microsecond, Rate: 1.0 / 30}
	small, large := at(64*kib, 20*gb, 200), at(16*mib, 45*gb, 5)
	both := always(usual(), reads(usual()))
	return []Fleet{
		{
			Name: "a pod uses the wrong NIC after an upgrade", Want: wants(diagnose.Straggler, "decode-2"), Alerts: agents("NIXLStraggler", 2),
			Members: some(6, []int{2}, fine, since(fine, func(t time.Duration, s *State) {
				if *s = (State{Loads: []Load{scaled(slowed(usual(), 40), 0.25)}, Restart: t == 30*time.Second}); t < 30*time.Second {
					*s = State{Up: diagnose.No}
				}
			})),
		},
		{
			Name: "the ports of two hosts fall to a quarter", Want: wants(diagnose.Straggler, "decode-0", "decode-1"), Alerts: agents("NIXLStraggler", 0, 1),
			Members: onHosts(some(8, []int{0, 1}, both, then(both, always(slowed(usual(), 4), slowed(reads(usual()), 4)))), 1),
		},
		{
			Name: "four ranks of a group hang", Want: wants(diagnose.Stalled, "decode-0", "decode-1", "decode-2", "decode-3"), Alerts: agents("NIXLAgentStalled", 0, 1, 2, 3), Critical: true,
			Members: some(8, []int{0, 1, 2, 3}, fine, then(fine, always())),
		},
		{
			Name: "an agent uses metadata of a peer that has restarted", Want: []Want{{diagnose.Failing, ""}}, Alerts: append(decode("NIXLErrors"), agents("NIXLAgentErrors", 1)...), Critical: true,
			Members: some(4, []int{1}, fine, since(fine, func(_ time.Duration, s *State) { s.Errors = map[string]float64{"backend": 13} })),
		},
		{
			Name: "half of the peers can't be reached", Want: []Want{{diagnose.Failing, ""}}, Alerts: decode("NIXLErrors"), Critical: true,
			Members: same("decode", 6, since(fine, func(_ time.Duration, s *State) {
				s.Loads, s.Errors = []Load{scaled(usual(), 0.5)}, map[string]float64{"backend": 15}
			})),
		},
		{
			Name: "a slow leak", Alerts: agents("NIXLMemoryGrows", 1), Length: 8 * time.Hour, Within: 7 * time.Hour,
			Members: some(4, []int{1}, fine, with(fine, func(t time.Duration, s *State) { s.Memory = uint64(64<<30 + max(0, t-Begin).Minutes()*(1<<26)) })),
		},
		{
			Name: "the offload storage of all agents becomes 20 times slower", Alerts: []Alert{{"NIXLSlower", "service_name", "storage"}}, Length: 80 * time.Minute, Within: 25 * time.Minute,
			Members: same("storage", 4, then(always(storage), always(slowed(storage, 20)))),
		},
		{
			Name: "a PCIe link falls to a quarter, which only large transfers notice", Want: wants(diagnose.Straggler, "decode-4"), Alerts: agents("NIXLStraggler", 4),
			Members: some(6, []int{4}, always(small, large), then(always(small, large), always(small, slowed(large, 4)))),
		},
		{
			Name: "a time-out cancels all reads", Alerts: agents("NIXLAgentErrors", 0, 1, 2, 3), Length: Begin + 12*time.Minute, Within: 12 * time.Minute,
			Members: same("decode", 4, then(both, func(time.Duration) State {
				return State{Loads: []Load{usual()}, Errors: map[string]float64{diagnose.Canceled: 20}}
			})),
		},
		{
			Name: "a Collector that is killed every three minutes", Alerts: []Alert{{"NIXLCollectorCrashLoop", "host_name", "node-1"}}, Length: Begin + 15*time.Minute, Within: 15 * time.Minute,
			Members: some(8, []int{1, 3, 5, 7}, fine, since(fine, func(t time.Duration, s *State) { s.Absent = t%(3*time.Minute) < time.Minute })),
		},
	}
}

// unremarkable returns healthy loads, written with the incidents that operators report.
func unremarkable() []Fleet {
	fine := always(usual())
	return []Fleet{
		{Name: "two of eight agents get smaller blocks", Warns: true, Members: some(8, []int{1, 2}, fine, then(fine, always(at(512*kib, 40*gb, 240))))},
		{Name: "a nightly batch on one agent", Members: some(6, []int{2}, fine, then(fine, always(scaled(usual(), 10))))},
		{Name: "pods that are recreated one after the other", Length: 70 * time.Minute, Members: members("decode", 6, func(i int) func(time.Duration) State {
			begin := Begin + time.Duration(i)*2*time.Minute
			return with(fine, func(t time.Duration, s *State) {
				if during(t, begin, 30*time.Second) {
					*s = State{Up: diagnose.No}
				}
				s.Restart = t == begin+30*time.Second
			})
		})},
		{Name: "a weekend", Length: 6 * time.Hour, Members: same("decode", 5, func(t time.Duration) State {
			return State{Loads: []Load{scaled(usual(), max(0.05, 1-t.Hours()/3, t.Hours()/3-1))}}
		})},
		{Name: "an autoscaler follows a fall of the load", Warns: true, Length: 70 * time.Minute, Members: members("decode", 8, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				l := scaled(usual(), 1-0.4*min(1, max(0, (t-Begin+8*time.Minute).Minutes()/5)))
				switch {
				case i < 4 && t >= Begin+5*time.Minute:
					return State{Up: diagnose.No}
				case i < 4 && t >= Begin:
					return State{}
				case t >= Begin:
					l.Rate *= 2
				}
				return State{Loads: []Load{l}}
			}
		})},
		{Name: "twice as many transfers of half the size", Members: same("decode", 6, then(fine, always(at(2*mib, 43*gb, 60))))},
		{Name: "two kinds of hosts", Members: members("decode", 8, func(i int) func(time.Duration) State {
			return always(at(4*mib, []float64{12.5 * gb, 45 * gb}[i%2], 10))
		})},
		{Name: "a pause of 90 seconds", Members: same("decode", 6, with(fine, func(t time.Duration, s *State) {
			if during(t, Begin, 90*time.Second) {
				s.Loads = nil
			}
		}))},
		{Name: "twice as many clients that cancel", Members: same("decode", 4, with(fine, func(t time.Duration, s *State) {
			s.Errors = map[string]float64{diagnose.Canceled: 3}
			if t >= Begin {
				s.Errors[diagnose.Canceled] = 7
			}
		}))},
		{Name: "two of eight agents also write for twenty minutes", Length: 80 * time.Minute, Members: some(8, []int{1, 2}, always(reads(usual())), func(t time.Duration) State {
			s := State{Loads: []Load{reads(usual())}}
			if during(t, Begin, 20*time.Minute) {
				s.Loads = append(s.Loads, usual())
			}
			return s
		})},
		{Name: "long prompts on one agent", Members: some(6, []int{3}, fine, then(fine, always(at(16*mib, 45*gb, 7))))},
	}
}
