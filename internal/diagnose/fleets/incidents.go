// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Incidents returns fleets with a problem that begins at Begin and must be found by Found.
func Incidents() []Fleet {
	list := slices.Concat(slow(), stalled(), others())
	for i := range list {
		list[i].Length = Found
	}
	return list
}

// slow returns fleets with agents that are slower than their peers.
func slow() []Fleet {
	return []Fleet{
		{
			Name: "an agent at a tenth of the speed", Want: []Want{{diagnose.Straggler, "decode-3"}},
			Members: except("decode", 6, 3, always(usual()), then(always(usual()), always(slowed(usual(), 10)))),
		},
		{
			Name: "a link at half speed", Want: []Want{{diagnose.Straggler, "decode-1"}},
			Members: except("decode", 4, 1, always(usual()), then(always(usual()), always(at(4*mib, 22.5*gb, 30)))),
		},
		{
			Name: "a link that was at half speed from the start", Want: []Want{{diagnose.Straggler, "decode-1"}},
			Members: except("decode", 8, 1, always(usual()), always(at(4*mib, 22.5*gb, 15))),
		},
		{
			// Its own speed would lower the median from 45 to 40.5 GB/s, and its limit with it.
			Name: "an agent whose peers differ", Want: []Want{{diagnose.Straggler, "decode-2"}},
			Members: members("decode", 4, func(i int) func(time.Duration) State {
				return always(at(4*mib, []float64{45, 36, 24, 45}[i]*gb, 15))
			}),
		},
		{
			Name: "two slow agents of sixteen", Want: []Want{{diagnose.Straggler, "decode-2"}, {diagnose.Straggler, "decode-7"}},
			Members: members("decode", 16, func(i int) func(time.Duration) State {
				if i == 2 || i == 7 {
					return then(always(usual()), always(slowed(usual(), 1/0.44)))
				}
				return always(usual())
			}),
		},
		{
			Name: "a slow agent among those with small blocks", Want: []Want{{diagnose.Straggler, "nixl-9"}},
			Members: members("nixl", 10, func(i int) func(time.Duration) State {
				small := at(128*kib, 45*gb, 200)
				switch {
				case i < 5:
					return always(usual())
				case i == 9:
					return then(always(small), always(slowed(small, 4)))
				}
				return always(small)
			}),
		},
		{
			Name: "a slow agent of 300", Want: []Want{{diagnose.Straggler, "decode-150"}},
			Members: except("decode", 300, 150, always(usual()), then(always(usual()), always(slowed(usual(), 3)))),
		},
	}
}

// stalled returns fleets that hang, or that are slower than before.
func stalled() []Fleet {
	return []Fleet{
		{
			Name: "an agent that hangs", Want: []Want{{diagnose.Stalled, "decode-2"}},
			Members: except("decode", 4, 2, always(usual()), then(always(usual()), always())),
		},
		{
			Name: "all agents hang", Want: []Want{{diagnose.JobStalled, ""}},
			Members: append(same("decode", 5, then(always(usual()), always())), same("prefill", 3, always(usual()))...),
		},
		{
			Name: "the fleet falls back to TCP", Want: []Want{{diagnose.JobSlower, ""}},
			Members: same("decode", 6, then(always(usual()), always(slowed(usual(), 20)))),
		},
		{
			Name: "one of two agents becomes slow", Want: []Want{{diagnose.Slower, "decode-1"}},
			Members: except("decode", 2, 1, always(usual()), then(always(usual()), always(slowed(usual(), 4)))),
		},
	}
}

func others() []Fleet {
	return []Fleet{
		{
			Name: "posting takes most of the time", Want: []Want{{diagnose.PostBound, "prefill-0"}},
			Members: except("prefill", 3, 0, always(usual()), then(always(usual()), always(
				Load{Size: 4 * mib, Time: 190 * time.Microsecond, Post: 130 * time.Microsecond, Rate: 30}))),
		},
		{
			Name: "small transfers wait behind large ones", Want: []Want{{diagnose.SmallBehindLarge, "decode-0"}},
			Members: except("decode", 2, 0, always(at(64*kib, 45*gb, 100), at(512*mib, 45*gb, 5)),
				always(at(64*kib, 45*gb, 60), Load{64 * kib, 6 * time.Millisecond, 4 * time.Microsecond, 40}, at(512*mib, 45*gb, 5))),
		},
		{
			Name: "operations of one agent fail", Want: []Want{{diagnose.Failing, ""}},
			Members: except("decode", 4, 1, always(usual()), with(always(usual()), func(t time.Duration, s *State) {
				if t >= Begin {
					s.Errors = map[string]float64{"backend": 8}
				}
			})),
		},
		{
			Name: "a peer doesn't come back", Want: []Want{{diagnose.Failing, ""}},
			Members: same("decode", 4, with(always(usual()), func(t time.Duration, s *State) {
				if t >= Begin {
					s.Errors = map[string]float64{"backend": 20, diagnose.Canceled: 3}
				}
			})),
		},
		{
			Name: "a ring that is too small", Want: []Want{{diagnose.EventsLost, "decode-0"}},
			Members: except("decode", 2, 0, always(usual()), with(always(usual()), func(t time.Duration, s *State) {
				if t >= Begin {
					s.Full, s.Fill = 0.2, 1
				}
			})),
		},
		{
			Name: "another consumer", Want: []Want{{diagnose.EventsTaken, "decode-1"}},
			Members: except("decode", 2, 1, always(usual()), with(always(usual()), func(t time.Duration, s *State) {
				if t >= Begin {
					s.Foreign = 1
				}
			})),
		},
		{
			Name: "the only agent of a host exits", Want: []Want{{diagnose.Gone, ""}},
			Members: func() []Member {
				list := except("decode", 4, 2, always(usual()), then(always(usual()), func(time.Duration) State { return State{Up: diagnose.No} }))
				list[2].Host = "alone"
				return list
			}(),
		},
	}
}
