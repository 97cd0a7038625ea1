// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// unseen returns incidents that were written before the rules had seen them, but by an author who had read the rules.
func unseen() []Fleet { //nolint:funlen // a table
	pull := reads(at(8*mib, 45*gb, 25))
	write := at(4*mib, 40*gb, 20)
	pulls, both := []Load{pull}, []Load{pull, write}
	var list explained
	list.incident("Two prefill hosts can't be reached: a quarter of all requests is computed twice.", Fleet{
		Name: "a quarter of all reads fails", Want: []Want{{diagnose.Failing, ""}}, Members: on("decode", 8, 2, affects(everyone, pulls, times(0.75, pull), failures("backend", 6))),
	})
	list.incident("The host's cards are throttled, and its requests wait nearly twice as long.", Fleet{
		Name: "a host at 55%", Want: wants(diagnose.Straggler, "decode-8", "decode-9", "decode-10", "decode-11"), Members: on("decode", 16, 4, affects(only(8, 9, 10, 11), pulls, []Load{reads(at(8*mib, 24.5*gb, 25))}, nil)),
	}, "decode-8", "decode-9", "decode-10", "decode-11")
	flaps := on("decode", 8, 2, func(i int) func(time.Duration) State {
		return func(t time.Duration) State {
			l := pull
			if i == 5 && t >= Begin && (t-Begin)%(10*time.Minute) < 5*time.Minute {
				l = slowed(l, 4)
			}
			return busy(i, l)(t)
		}
	})
	list.incident("A cable flaps: five bad minutes, five good ones.", Fleet{Name: "a link that flaps every five minutes", Members: flaps}, "decode-5")
	list.incident("One rank of data parallelism is stuck, in a job whose load was never spread evenly.", Fleet{
		Name: "a stuck rank among uneven ones", Want: wants(diagnose.Stalled, "dp-3"), Members: on("dp", 8, 4, func(i int) func(time.Duration) State {
			l := pull
			l.Rate *= float64(1 + i*i%5)
			if i == 3 {
				return then(busy(i, l), always())
			}
			return busy(i, l)
		}),
	}, "dp-3")
	small, large := reads(at(256*kib, 30*gb, 40)), reads(at(32*mib, 45*gb, 8))
	list.incident("A wrong MTU on one host: small transfers are fine, large ones take five times as long.", Fleet{
		Name: "a wrong MTU on one host", Want: wants(diagnose.Straggler, "decode-2", "decode-3"), Members: on("decode", 10, 2, affects(only(2, 3), []Load{small, large}, []Load{small, slowed(large, 5)}, nil)),
	}, "decode-2", "decode-3")
	store := reads(at(16*mib, 3*gb, 4))
	list.incident("The object store throttles its clients.", Fleet{
		Name: "an object store throttles", Want: []Want{{diagnose.JobSlower, ""}}, Members: on("offload", 6, 2, affects(everyone, []Load{store}, []Load{slowed(store, 8)}, nil)),
	})
	list.incident("Each reconnection leaves 2 GiB pinned. In a few hours, the host has none left.", Fleet{
		Name: "pinned memory grows in steps", Length: Begin + time.Hour, Within: 55 * time.Minute,
		Members: on("decode", 6, 2, func(i int) func(time.Duration) State {
			return with(busy(i, pull), func(t time.Duration, s *State) {
				s.Memory = 48 << 30
				if i == 4 && t > Begin {
					s.Memory += uint64((t-Begin)/(5*time.Minute)) << 31
				}
			})
		}),
	}, "decode-4")
	list.incident("An operator started a second reader on a host, and the totals of its agents are too low.", Fleet{
		Name: "a second reader on one host", Want: []Want{{diagnose.EventsTaken, ""}}, Members: on("decode", 8, 2, affects(only(0, 1), pulls, pulls, func(_ time.Duration, s *State) { s.Foreign = 0.5 })),
	}, "decode-0", "decode-1")
	list.incident("After an upgrade of the driver, one operation in 40 fails, and each is computed twice.", Fleet{
		Name: "one operation in 40 fails", Want: wants(diagnose.SomeFail, "decode-0", "decode-1", "decode-2", "decode-3"), Members: on("decode", 4, 2, affects(everyone, pulls, pulls, failures("backend", 0.65))),
	}, "decode-0", "decode-1", "decode-2", "decode-3")
	list.incident("The store of metadata is down: requests wait, and nothing moves.", Fleet{
		Name: "nothing moves although requests run", Want: []Want{{diagnose.JobStalled, ""}}, Requests: 20, Members: on("decode", 6, 2, after(everyone, doing(both...), func(int) func(time.Duration) State { return always() })),
	})
	list.incident("A volume was remounted read-only: nothing new is kept on one worker.", Fleet{
		Name: "the writes of one worker stop", Want: wants(diagnose.Stalled, "offload-2"), Members: on("offload", 6, 2, affects(only(2), both, pulls, nil)),
	}, "offload-2")
	loops := on("decode", 8, 2, func(i int) func(time.Duration) State {
		return with(busy(i, pull), func(t time.Duration, s *State) {
			s.Absent = i/2 == 1 && t >= Begin && t%(150*time.Second) < 75*time.Second
		})
	})
	f := Fleet{Name: "a Collector that runs out of memory", Members: loops, Alerts: []Alert{{"", "host_name", "gpu-01"}}, Within: 15 * time.Minute}
	list.incident("The host's metrics have holes, and its alerts with them.", f)
	list.incident("The ring of one agent was deleted while it runs: it could hang, and nobody would see it.", Fleet{
		Name: "an agent disappears from its host's metrics", Want: wants(diagnose.Missing, "decode-3"), Members: on("decode", 8, 2, affects(only(3), pulls, pulls, func(_ time.Duration, s *State) { s.Absent = true })),
	}, "decode-3")
	list.incident("The fabric gets worse in steps: at last, requests wait 2.5 times as long.", Fleet{
		Name: "a fabric that gets worse in steps", Want: []Want{{diagnose.JobSlower, ""}}, Length: Begin + 20*time.Minute, Within: 20 * time.Minute,
		Members: on("decode", 8, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				steps := 0.
				if t >= Begin {
					steps = min(3, math.Floor((t-Begin).Minutes()/5)+1)
				}
				return busy(i, reads(at(8*mib, (45-9*steps)*gb, 25)))(t)
			}
		}),
	})
	list.incident("A cache that is nearly full is fragmented: 32 times as many transfers for the same bytes.", Fleet{
		Name: "a fragmented cache", Members: on("decode", 6, 2, affects(everyone, []Load{at(2*mib, 40*gb, 30)}, []Load{at(64*kib, 12*gb, 960)}, nil)),
	})
	list.incident("One of the two workers of a small tenant is slow, and half of its requests.", Fleet{
		Name: "one of two workers at a fifth", Want: wants(diagnose.Slower, "tenant-1"), Members: on("tenant", 2, 1, affects(only(1), pulls, []Load{slowed(pull, 5)}, nil)),
	}, "tenant-1")
	return list
}

// unseenHealthy returns healthy fleets that were written with unseen.
func unseenHealthy() []Fleet { //nolint:funlen // a table
	pull := reads(at(8*mib, 45*gb, 25))
	write := at(4*mib, 40*gb, 20)
	var list explained
	list.healthy("The load moves from the blue job to the green one. Blue exits when nobody needs it for a rollback.", Fleet{
		Name: "blue and green", Members: append(
			on("blue", 6, 2, each(func(i int, t time.Duration) State {
				if t >= Begin+20*time.Minute {
					return State{Up: diagnose.No}
				}
				return State{Loads: times(1-ramp(t, Begin, 2*time.Minute), busy(i, pull)(t).Loads...)}
			})),
			on("green", 6, 2, each(func(i int, t time.Duration) State {
				return State{Absent: t < 30*time.Minute, Loads: times(ramp(t, Begin, 2*time.Minute), busy(i, pull)(t).Loads...)}
			}))...),
	})
	list.healthy("One worker per host backs the caches up.", Fleet{Name: "a backup with large blocks", Warns: true, Members: on("decode", 8, 4, each(func(i int, t time.Duration) State {
		s := busy(i, pull)(t)
		if i%4 == 1 && during(t, Begin, 20*time.Minute) {
			s.Loads = append(s.Loads, at(256*mib, 20*gb, 8))
		}
		return s
	}))})
	list.healthy("Conversations get longer, and so do the transfers.", Fleet{Name: "sizes double every 20 minutes", Members: on("decode", 6, 2, each(func(i int, t time.Duration) State {
		return busy(i, reads(at(uint64(4*mib)<<uint(t/(20*time.Minute)), 45*gb, 15)))(t)
	}))})
	list.healthy("The cache is quantized from now on: half of the bytes.", Fleet{Name: "a quantized cache", Members: on("decode", 6, 2, each(func(i int, t time.Duration) State {
		begin := Begin + time.Duration(i)*3*time.Minute
		switch {
		case t < begin:
			return busy(i, pull)(t)
		case t < begin+time.Minute:
			return State{Up: diagnose.No}
		}
		s := busy(i, reads(at(4*mib, 43*gb, 25)))(t)
		s.Restart = t == begin+time.Minute
		return s
	}))})
	list.healthy("The weekend begins.", Fleet{Name: "the load of a Friday evening", Length: 3 * time.Hour, Members: on("decode", 6, 2, each(func(i int, t time.Duration) State {
		return State{Loads: times(max(0.05, 1-0.4*t.Hours()), busy(i, pull)(t).Loads...)}
	}))})
	list.healthy("A canary gets a twentieth of the load.", Fleet{Name: "a canary", Members: on("decode", 8, 2, each(func(i int, t time.Duration) State {
		if i == 7 {
			return State{Absent: t < 30*time.Minute, Loads: times(0.4, busy(i, pull)(t).Loads...)}
		}
		return busy(i, pull)(t)
	}))})
	list.healthy("Another region fails over to this one, which was built for that.", Fleet{Name: "a failover brings 2.5 times the load", Members: on("decode", 8, 2, each(func(i int, t time.Duration) State {
		up := ramp(t, Begin, 2*time.Minute)
		return State{Loads: times(1+1.5*up, busy(i, slowed(pull, 1+0.4*up))(t).Loads...)}
	}))})
	list.healthy("A host is rebooted for its kernel, and comes back.", Fleet{Name: "a host is rebooted", Members: on("decode", 8, 2, each(func(i int, t time.Duration) State {
		back := Begin + 9*time.Minute
		switch {
		case i/2 != 1 && during(t, Begin, back-Begin):
			return State{Loads: times(4./3, busy(i, pull)(t).Loads...)}
		case i/2 != 1 || t < Begin:
			return busy(i, pull)(t)
		case t < Begin+2*time.Minute:
			return State{}
		case t < Begin+3*time.Minute:
			return State{Up: diagnose.No}
		case t < back:
			return State{Absent: true}
		}
		s := busy(i, pull)(t)
		s.Restart = t == back
		return s
	}))})
	list.healthy("A benchmark tries sizes, one after the other.", Fleet{Name: "a sweep of sizes", Warns: true, Members: on("bench", 4, 2, each(func(_ int, t time.Duration) State {
		n := uint(t/(3*time.Minute)) % 6
		return State{Loads: []Load{at(uint64(64*kib)<<(2*n), 45*gb, 800/math.Pow(3, float64(n)))}}
	}))})
	list.healthy("Training stops for an evaluation, every half hour.", Fleet{Name: "pauses for evaluations", Length: 2 * time.Hour, Members: on("train", 8, 4, each(func(i int, t time.Duration) State {
		if t%(30*time.Minute) >= 24*time.Minute {
			return State{}
		}
		return busy(i, pull, write)(t)
	}))})
	list.healthy("A pipeline writes for ten minutes and reads for ten.", Fleet{Name: "directions take turns", Length: 2 * time.Hour, Members: on("pipeline", 6, 2, each(func(i int, t time.Duration) State {
		if t/(10*time.Minute)%2 == 0 {
			return busy(i, write)(t)
		}
		return busy(i, pull)(t)
	}))})
	list.healthy("A few errors per hour are retried.", Fleet{Name: "a few errors per hour", Members: on("decode", 8, 2, each(func(i int, t time.Duration) State {
		s := busy(i, pull)(t)
		if (t+time.Duration(i)*97*time.Second)%(20*time.Minute) < Every {
			s.Errors = map[string]float64{"backend": 0.2}
		}
		return s
	}))})
	list.healthy("Bursts fill the rings to 60%, which is what rings are for.", Fleet{Name: "rings at 60%", Members: on("decode", 8, 2, each(func(i int, t time.Duration) State {
		s := busy(i, pull)(t)
		if (t+time.Duration(i)*time.Minute)%(5*time.Minute) < time.Minute {
			s.Fill, s.Loads = 0.6, times(3, s.Loads...)
		}
		return s
	}))})
	list.healthy("Three hosts of twelve have an older generation of PCIe, and always had.", Fleet{Name: "an older generation of PCIe", Members: on("decode", 12, 1, each(func(i int, t time.Duration) State {
		if i%4 == 0 {
			return busy(i, reads(at(8*mib, 31*gb, 20)))(t)
		}
		return busy(i, pull)(t)
	}))})
	list.healthy("A second model is loaded on all workers, once.", Fleet{Name: "another model is loaded", Members: on("decode", 6, 2, each(func(i int, t time.Duration) State {
		s := busy(i, pull)(t)
		s.Memory = 64<<30 + uint64(ramp(t, Begin, 2*time.Minute)*(40<<30))
		return s
	}))})
	list.healthy("A scrape fails now and then.", Fleet{Name: "scrapes that fail now and then", Members: on("decode", 8, 2, each(func(i int, t time.Duration) State {
		s := busy(i, pull)(t)
		_, x := math.Modf(math.Abs(math.Sin(float64(i/2)*12.9898+t.Minutes()*78.233)) * 43758.5453)
		s.Absent = x < 0.05
		return s
	}))})
	return list
}
