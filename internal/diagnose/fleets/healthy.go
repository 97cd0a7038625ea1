// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Healthy returns fleets without a problem.
func Healthy() []Fleet {
	list := slices.Concat(mixed(), changing(), loaded(), everyday(), everydaySecond(), everydayThird(), scaledDown(), operated(), unremarkable())
	for i := range list {
		if list[i].Length == 0 {
			list[i].Length = Found + 5*time.Minute
		}
	}
	return list
}

// mixed returns fleets with agents that differ.
func mixed() []Fleet {
	return []Fleet{
		{Name: "small and large blocks in one job", Members: members("nixl", 9, func(i int) func(time.Duration) State {
			return always(at([]uint64{16 * kib, 256 * kib, 4 * mib}[i%3], 45*gb, 50))
		})},
		{Name: "small blocks of one agent", Members: except("nixl", 6, 2, always(usual()), always(at(1*mib, 45*gb, 100)))},
		{Name: "an idle agent with heartbeats", Members: except("nixl", 5, 2, always(usual(), heartbeat()), always(heartbeat()))},
		{Name: "an agent with few transfers and heartbeats", Members: except("nixl", 5, 2, always(usual(), heartbeat()), always(at(4*mib, 45*gb, 0.1), heartbeat()))},
		{Name: "one large transfer every three minutes", Members: except("nixl", 5, 1, always(usual()), always(at(512*mib, 10*gb, 1.0/180)))},
		{Name: "night", Length: 3 * time.Hour, Members: same("decode", 6, func(t time.Duration) State {
			l := usual()
			l.Rate *= max(0.01, math.Exp(-t.Hours()*3))
			return State{Loads: []Load{l, heartbeat()}}
		})},
		{Name: "prefill and decode in one job", Members: members("nixl", 8, func(i int) func(time.Duration) State {
			if i%2 == 0 {
				return always(at(16*mib, 45*gb, 20))
			}
			return always(at(256*kib, 40*gb, 300))
		})},
		{Name: "prefill and decode in their own jobs", Members: append(
			same("prefill", 4, always(at(16*mib, 45*gb, 20))), same("decode", 4, always(at(256*kib, 15*gb, 300)))...)},
		{Name: "two generations of NICs", Members: members("decode", 8, func(i int) func(time.Duration) State {
			if i%2 == 0 {
				return always(at(4*mib, 22.5*gb, 15))
			}
			return always(usual())
		})},
		{Name: "a few old NICs", Members: members("decode", 9, func(i int) func(time.Duration) State {
			if i%3 == 0 {
				return always(at(4*mib, 22.5*gb, 15))
			}
			return always(usual())
		})},
		{Name: "storage agents in a job of their own", Members: append(
			same("decode", 6, always(usual())), same("storage", 4, always(at(4*mib, 1.5*gb, 10)))...)},
		{Name: "slow storage", Members: same("storage", 4, always(Load{Size: 512 * mib, Time: 3 * time.Second, Post: 100 * time.Microsecond, Rate: 2}))},
	}
}

// changing returns fleets whose load or agents change.
func changing() []Fleet {
	return []Fleet{
		{Name: "a rollout", Length: time.Hour, Members: rollout(5, Begin/2, usual)},
		{Name: "agents that restart with totals from 0", Length: time.Hour, Members: members("decode", 4, func(i int) func(time.Duration) State {
			begin := Begin + time.Duration(i)*3*time.Minute
			return with(always(usual()), func(t time.Duration, s *State) {
				if during(t, begin, time.Minute) {
					*s = State{Up: diagnose.No}
				}
				s.Restart = t == begin+time.Minute
			})
		})},
		{Name: "a peer restarts for 45 s", Length: time.Hour, Members: append(
			same("prefill", 4, with(always(usual()), func(t time.Duration, s *State) {
				if during(t, Begin, 45*time.Second) {
					s.Loads, s.Errors = nil, map[string]float64{"backend": 30}
				}
			})),
			same("decode", 1, with(always(usual()), func(t time.Duration, s *State) {
				if during(t, Begin, 45*time.Second) {
					s.Loads, s.Up = nil, diagnose.No
				}
			}))...)},
		{Name: "cancellations", Members: same("decode", 4, with(always(at(4*mib, 45*gb, 0.2)), func(_ time.Duration, s *State) {
			s.Errors = map[string]float64{diagnose.Canceled: 0.1}
		}))},
		{Name: "few errors", Members: same("decode", 4, with(always(usual()), func(_ time.Duration, s *State) {
			s.Errors = map[string]float64{"backend": 0.3}
		}))},
		{Name: "two agents", Members: members("nixl", 2, func(i int) func(time.Duration) State {
			return always(at(4*mib, []float64{45 * gb, 20 * gb}[i], 10))
		})},
		{Name: "300 agents", Members: members("decode", 300, func(i int) func(time.Duration) State {
			return always(at(4*mib, 45*gb*(1-float64(i%7)/40), float64(5+i%50)))
		})},
		{Name: "an idle weekend", Length: 6 * time.Hour, Members: same("decode", 5, func(t time.Duration) State {
			l := usual()
			l.Rate *= max(0, 1-t.Hours())
			return State{Loads: []Load{l}}
		})},
		{Name: "no transfers at all", Members: same("decode", 5, always())},
		{Name: "bursts", Length: 2 * time.Hour, Members: members("decode", 5, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				l := usual()
				if t/(4*time.Minute)%2 == time.Duration(i%2) {
					l.Rate = 0
				}
				return State{Loads: []Load{l}}
			}
		})},
		{Name: "a spare agent", Members: except("decode", 5, 4, always(usual()), always())},
		{Name: "other sizes than before", Members: same("decode", 5, then(always(usual()), always(at(64*kib, 45*gb, 300))))},
	}
}

// rollout returns the pods of a deployment that replaces one after the other. A new pod starts a
// minute before the old one exits.
func rollout(pods int, begin time.Duration, after func() Load) (list []Member) {
	for i := range pods {
		replaced := begin + time.Duration(i)*4*time.Minute
		for generation := range 2 {
			m := Member{Identity: diagnose.Identity{
				Job: diagnose.Job{Namespace: "inference", Service: "decode"}, Pod: fmt.Sprintf("decode-%d-%d", generation, i), Host: "node-0", Name: "rank-0",
			}}
			m.Do = func(t time.Duration) State {
				switch {
				case generation == 0 && t >= replaced+5*time.Minute:
					return State{Absent: true}
				case generation == 0 && t >= replaced:
					return State{Up: diagnose.No}
				case generation == 0:
					return State{Loads: []Load{usual()}}
				case t < replaced-time.Minute:
					return State{Absent: true}
				}
				return State{Loads: []Load{after()}}
			}
			list = append(list, m)
		}
	}
	return list
}

// loaded returns fleets that do more, less or other work than before.
func loaded() []Fleet {
	drained := usual()
	drained.Rate *= 4. / 3
	checkpoint := at(1024*mib, 12*gb, 1)
	return []Fleet{
		{Name: "a checkpoint every 30 minutes", Length: 3 * time.Hour, Members: same("train", 6, func(t time.Duration) State {
			s := State{Loads: []Load{usual()}}
			if t%(30*time.Minute) >= 25*time.Minute {
				s.Loads = []Load{checkpoint, slowed(usual(), 3)}
			}
			return s
		})},
		{Name: "a morning's load on a shared link", Length: 2 * time.Hour, Members: same("decode", 6, func(t time.Duration) State {
			l := usual()
			if t > time.Hour {
				l = slowed(l, 3)
				l.Rate *= 3
			}
			return State{Loads: []Load{l}}
		})},
		{Name: "blocks that are 16 times larger", Members: same("decode", 6, then(always(usual()), always(at(64*mib, 15*gb, 2))))},
		{Name: "the end of a benchmark while its processes stay", Length: 2 * time.Hour, Members: members("bench", 6, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				if t >= Begin+time.Duration(i)*5*time.Second {
					return State{}
				}
				return State{Loads: []Load{usual()}}
			}
		})},
		{Name: "the end of a burst after a quiet hour", Length: 2 * time.Hour, Members: same("decode", 4, func(t time.Duration) State {
			l := usual()
			l.Rate = 1
			if t >= time.Hour && t < 80*time.Minute {
				l.Rate = 60
			} else if t >= 80*time.Minute {
				l.Rate = 0
			}
			return State{Loads: []Load{l}}
		})},
		{Name: "an agent that a load balancer drains", Warns: true, Members: except("decode", 4, 1, then(always(usual()), always(drained)), then(always(usual()), always()))},
		{Name: "look-ups that find nothing", Warns: true, Members: same("decode", 4, with(always(usual()), func(_ time.Duration, s *State) {
			s.Errors = map[string]float64{diagnose.NotFound: 4}
		}))},
		{Name: "memory that is registered at the start", Members: same("decode", 4, with(always(usual()), func(t time.Duration, s *State) {
			s.Memory = uint64(min(t, 15*time.Minute).Seconds() * (1 << 26))
		}))},
		{Name: "memory that comes and goes", Length: 90 * time.Minute, Members: same("decode", 4, with(always(usual()), func(t time.Duration, s *State) {
			s.Memory = uint64(1<<34 + (t%(7*time.Minute)).Seconds()*(1<<23))
		}))},
		{Name: "a Collector that restarts once", Members: except("decode", 4, 1, always(usual()), with(always(usual()), func(t time.Duration, s *State) {
			s.Absent = during(t, Begin, time.Minute)
			s.Restart = t == Begin+time.Minute
		}))},
		{Name: "reads and writes of different speed", Members: same("decode", 5, always(usual(), reads(at(4*mib, 12*gb, 20))))},
		{Name: "an agent that only reads, among writers", Members: except("decode", 6, 2, always(usual()), always(reads(usual())))},
	}
}

// everyday returns fleets that change in ways that no limit was chosen for.
func everyday() []Fleet {
	fine := always(usual())
	busier := func(by float64) Load { return scaled(usual(), by) }
	// gone returns what an agent does that exits at a time, and whose ring is removed soon.
	gone := func(at time.Duration) func(time.Duration) State {
		return func(t time.Duration) State {
			switch {
			case t >= at+30*time.Second:
				return State{Absent: true}
			case t >= at:
				return State{Up: diagnose.No}
			}
			return fine(t)
		}
	}
	small := at(1*mib, 38*gb, 120)
	return []Fleet{
		{Name: "a job that is scaled down", Length: 70 * time.Minute, Members: members("decode", 8, func(i int) func(time.Duration) State {
			if i < 4 {
				return then(fine, always(busier(1.5)))
			}
			return gone(Begin + time.Duration(i-4)*2*time.Minute)
		})},
		{Name: "a job that is scaled up, with a slow start", Length: 70 * time.Minute, Members: members("decode", 8, func(i int) func(time.Duration) State {
			begin := Begin + time.Duration(i)*time.Minute
			return func(t time.Duration) State {
				switch {
				case i >= 4 && t < begin:
					return State{Absent: true}
				case i >= 4 && t < begin+90*time.Second:
					return State{Loads: []Load{slowed(busier(0.2), 3)}}
				}
				return fine(t)
			}
		})},
		{Name: "the end of a batch job", Length: 70 * time.Minute, Members: members("batch", 6, func(i int) func(time.Duration) State { return gone(Begin + time.Duration(i)*10*time.Second) })},
		{Name: "a job that is replaced as a whole", Length: 70 * time.Minute, Members: append(
			members("decode", 4, func(int) func(time.Duration) State { return gone(Begin) }),
			func() []Member {
				list := same("decode", 4, with(fine, func(t time.Duration, s *State) { s.Absent = t < Begin+2*time.Minute }))
				for i := range list {
					list[i].Name += "-new"
				}
				return list
			}()...)},
		{Name: "another ratio of prefill and decode", Length: 70 * time.Minute, Members: same("nixl", 6, then(always(usual(), reads(usual())), always(busier(2))))},
		{Name: "larger blocks", Length: 70 * time.Minute, Members: same("decode", 5, then(fine, always(at(12*mib, 46*gb, 10))))},
		{Name: "a model with other sizes", Length: 70 * time.Minute, Members: rollout(4, Begin, func() Load { return small })},
		{Name: "caches that warm up", Length: time.Hour, Members: same("decode", 5, func(t time.Duration) State {
			warm := min(1, t.Minutes()/20)
			l := at(uint64(512*kib+warm*3.5*mib), 20*gb+warm*25*gb, 20+40*warm)
			return State{Loads: []Load{l}, Memory: uint64(1<<34 + warm*(1<<35))}
		})},
		{Name: "a lull without transfers every quarter of an hour", Length: 2 * time.Hour, Members: same("decode", 5, func(t time.Duration) State {
			if t%(15*time.Minute) >= 11*time.Minute {
				return State{}
			}
			return fine(t)
		})},
		{Name: "a host whose clock jumps by two minutes", Members: members("decode", 6, func(i int) func(time.Duration) State {
			return with(fine, func(t time.Duration, s *State) { s.Absent = i%2 == 1 && during(t, Begin, 2*time.Minute) })
		})},
		{Name: "Collectors that restart twice for an upgrade", Members: members("decode", 6, func(i int) func(time.Duration) State {
			return with(fine, func(t time.Duration, s *State) {
				begin := Begin + time.Duration(i%2)*2*time.Minute
				s.Absent = during(t, begin, 45*time.Second) || during(t, begin+5*time.Minute, 45*time.Second)
				s.Restart = t == begin+45*time.Second || t == begin+5*time.Minute+45*time.Second
			})
		})},
		{Name: "a new agent that only writes", Members: except("nixl", 6, 2, always(usual(), reads(usual())), with(always(busier(2)), func(t time.Duration, s *State) { s.Absent = t < Begin }))},
	}
}

// everydaySecond returns further healthy fleets, written before the rules and tools had seen them.
func everydaySecond() []Fleet {
	fine := always(usual())
	return []Fleet{
		{Name: "a prefill pool that is scaled to zero for an hour", Length: 3 * time.Hour, Members: append(
			members("prefill", 4, func(i int) func(time.Duration) State {
				out, in := Begin+time.Duration(i)*time.Minute, Begin+time.Hour+time.Duration(i)*time.Minute
				return func(t time.Duration) State {
					switch {
					case during(t, out, time.Minute):
						return State{Up: diagnose.No}
					case during(t, out, in-out):
						return State{Absent: true}
					case t == in:
						return State{Restart: true}
					}
					return fine(t)
				}
			}), same("decode", 4, func(t time.Duration) State {
				l := usual()
				if during(t, Begin, time.Hour) {
					l.Rate /= 20
				}
				return State{Loads: []Load{l}}
			})...)},
		{Name: "a rolling upgrade of all hosts", Length: 2 * time.Hour, Members: func() []Member {
			list := members("decode", 8, func(i int) func(time.Duration) State {
				begin := Begin + time.Duration(i/2)*8*time.Minute
				return func(t time.Duration) State {
					switch {
					case during(t, begin, 30*time.Second):
						return State{Up: diagnose.No}
					case during(t, begin, 5*time.Minute):
						return State{Absent: true}
					case t == begin+5*time.Minute:
						return State{Restart: true}
					}
					return fine(t)
				}
			})
			for i := range list {
				list[i].Host = fmt.Sprintf("node-%d", i/2)
			}
			return list
		}()},
		{Name: "reports that are missing for half a minute every three minutes", Length: 70 * time.Minute, Members: members("decode", 6, func(i int) func(time.Duration) State {
			return with(fine, func(t time.Duration, s *State) {
				s.Absent = i%2 == 1 && t >= Begin && t%(3*time.Minute) < 30*time.Second
			})
		})},
		{Name: "two models that take turns", Length: 3 * time.Hour, Members: same("decode", 6, func(t time.Duration) State {
			if t/(20*time.Minute)%2 == 1 {
				return State{Loads: []Load{at(16*mib, 40*gb, 10)}}
			}
			return State{Loads: []Load{at(1*mib, 25*gb, 100), at(64*kib, 8*gb, 50)}}
		})},
		{Name: "a load test for a quarter of an hour", Length: 80 * time.Minute, Members: same("decode", 6, func(t time.Duration) State {
			l := usual()
			if during(t, Begin, 15*time.Minute) {
				l = slowed(l, 2.5)
				l.Rate *= 5
			}
			return State{Loads: []Load{l}}
		})},
	}
}

// everydayThird returns further healthy fleets, written after those of everydaySecond, in the same way.
func everydayThird() []Fleet {
	fine := always(usual())
	large, small := at(16*mib, 45*gb, 1), at(512*kib, 30*gb, 1)
	return []Fleet{
		{Name: "a job that is scaled to zero and back three times", Length: 2 * time.Hour, Members: members("decode", 4, func(int) func(time.Duration) State {
			return func(t time.Duration) State {
				switch in := (t - Begin) % (20 * time.Minute); {
				case t < Begin || t >= Begin+time.Hour || in >= 12*time.Minute:
					return fine(t)
				case in < 30*time.Second:
					return State{Up: diagnose.No}
				case in == 12*time.Minute-Every:
					return State{Absent: true, Restart: true}
				}
				return State{Absent: true}
			}
		})},
		{Name: "a rolling restart, one agent per minute", Length: 70 * time.Minute, Members: members("decode", 12, func(i int) func(time.Duration) State {
			begin := Begin + time.Duration(i)*time.Minute
			return with(fine, func(t time.Duration, s *State) {
				if during(t, begin, 30*time.Second) {
					*s = State{Up: diagnose.No}
				}
				s.Restarted = t == begin+30*time.Second
			})
		})},
		{Name: "a restart of all pods that takes four minutes", Length: 70 * time.Minute, Requests: 3, Members: same("decode", 4, func(t time.Duration) State {
			switch {
			case during(t, Begin, 30*time.Second):
				return State{Up: diagnose.No}
			case during(t, Begin, 4*time.Minute):
				return State{Restart: t == Begin+30*time.Second}
			}
			return fine(t)
		})},
		{Name: "a nightly batch with ten times the load", Length: 2 * time.Hour, Members: same("decode", 6, func(t time.Duration) State {
			l := usual()
			if during(t, Begin, 40*time.Minute) {
				l = slowed(l, 4)
				l.Rate *= 10
			}
			return State{Loads: []Load{l}}
		})},
		{Name: "a big and a small model whose shares change", Length: 2 * time.Hour, Members: members("decode", 6, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				share := 0.5 + 0.4*math.Sin(2*math.Pi*(t.Hours()*2+float64(i)/6))
				l, s := large, small
				l.Rate, s.Rate = 20*share, 200*(1-share)
				return State{Loads: []Load{l, s}}
			}
		})},
		{Name: "a Collector restarts while the load doubles", Members: members("decode", 6, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				l := usual()
				if t >= Begin-time.Minute {
					l = slowed(l, 1.4)
					l.Rate *= 2
				}
				return State{Loads: []Load{l}, Absent: i%2 == 1 && during(t, Begin, 45*time.Second), Restart: i%2 == 1 && t == Begin+45*time.Second}
			}
		})},
	}
}
