// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Strangers returns incidents by an author who knew the metrics, but none of the rules.
func Strangers() []Fleet { //nolint:funlen // a table
	const hour = time.Hour
	// A decode worker of vLLM reads the KV cache of each request from a prefill worker.
	pull := reads(at(8*mib, 45*gb, 25))
	// A worker of Dynamo writes blocks to its peer and reads others.
	push := at(2*mib, 40*gb, 40)
	var list explained

	list.incident("Requests on this host wait four times as long until the cable is replaced.", Fleet{
		Name: "a NIC negotiates down to 100 Gbit/s", Want: wants(diagnose.Straggler, "decode-6", "decode-7"),
		Members: on("decode", 12, 2, after(only(6, 7), doing(pull),
			doing(reads(at(8*mib, 11*gb, 25))))),
	}, "decode-6", "decode-7")

	tp8 := func(i int) bool { return i%8 == 5 }
	ranks := on("tp8", 32, 8, after(tp8, doing(pull), doing(slowed(pull, 2.5))))
	var rail []string
	for i := range ranks {
		ranks[i].Pod = fmt.Sprintf("tp8-%d", i/8)
		ranks[i].Name = fmt.Sprintf("tp8-%d-rank-%d", i/8, i%8)
		if tp8(i) {
			rail = append(rail, ranks[i].Name)
		}
	}
	list.incident("A request waits for its slowest rank, so one congested rail slows all requests.",
		Fleet{Name: "a congested rail slows the same rank of all replicas", Want: wants(diagnose.Straggler, rail...), Members: ranks}, rail...)

	list.incident("A spine switch lost half of its uplinks; all requests wait twice as long.", Fleet{
		Name: "the fabric at half speed", Want: []Want{{diagnose.JobSlower, ""}},
		Members: on("decode", 10, 2, after(everyone, doing(pull), doing(reads(at(8*mib, 21*gb, 25))))),
	})

	list.incident("The pod came back without its RDMA device, and UCX fell back to TCP without a word.", Fleet{
		Name: "one pod falls back to TCP after a restart", Want: wants(diagnose.Straggler, "decode-4"),
		Members: on("decode", 10, 1, after(only(4), doing(pull), func(i int) func(time.Duration) State {
			slow := busy(i, reads(at(8*mib, 1.8*gb, 25)))
			return func(t time.Duration) State {
				if t < Begin+time.Minute {
					return State{Up: diagnose.No}
				}
				s := slow(t)
				s.Restart = t == Begin+time.Minute
				return s
			}
		})),
	}, "decode-4")

	list.incident("A prefill peer hangs. The decode worker gives up each transfer after its time-out and computes the cache again.", Fleet{
		Name: "time-outs of a hung peer end as canceled", Length: Begin + 30*time.Minute, Lasts: true, Want: wants(diagnose.SomeFail, "decode-3"),
		Members: on("decode", 8, 2, after(only(3), doing(pull), func(i int) func(time.Duration) State {
			return with(busy(i, times(0.7, pull)...), func(_ time.Duration, s *State) {
				s.Errors = map[string]float64{"canceled": 6}
			})
		})),
	}, "decode-3")

	list.incident("The index of the cache pool is gone: nothing is read anymore, everything is computed again, and only writes go on.", Fleet{
		Name: "all reads of a pool stop", Want: []Want{{diagnose.JobStalled, ""}},
		Members: on("offload", 8, 2, after(everyone, doing(push, reads(at(4*mib, 30*gb, 30))),
			doing(push))),
	})

	list.incident("In some hours the process runs out of pinned memory and dies.", Fleet{
		Name: "registrations leak",
		Members: on("decode", 8, 2, func(i int) func(time.Duration) State {
			return with(busy(i, pull), func(t time.Duration, s *State) {
				s.Memory = 64 << 30
				if i == 2 && t > Begin {
					s.Memory += uint64((t - Begin).Minutes() * float64(1<<30))
				}
			})
		}),
		Length: Begin + hour, Within: 45 * time.Minute, Lasts: true,
	}, "decode-2")

	loop := map[time.Duration]time.Duration{} // starts, and how long it lives
	for at, wait := Begin, 15*time.Second; at < Begin+hour; at += 45*time.Second + wait {
		loop[at] = 45 * time.Second
		wait = min(5*time.Minute, 2*wait)
	}
	list.incident("The pod never gets ready. Kubernetes restarts it less and less often.", Fleet{
		Name: "a pod that never gets ready", Want: wants(diagnose.CrashLoop, "decode-1"),
		Members: on("decode", 8, 2, after(only(1), doing(pull), func(int) func(time.Duration) State {
			return func(t time.Duration) State {
				for at, lives := range loop {
					if during(t, at, lives) {
						return State{Restarted: t == at, Loads: times(0.1, pull)}
					}
				}
				return State{Up: diagnose.No}
			}
		})),
		Length: Begin + 40*time.Minute + 30*time.Second, Lasts: true,
	}, "decode-1")

	list.incident("The Collector of this host gets no CPU; its totals are too low, and each decision made from them is wrong.", Fleet{
		Name: "rings run full behind a noisy neighbor", Want: wants(diagnose.EventsLost, "decode-4", "decode-5"),
		Members: on("decode", 8, 2, after(only(4, 5), doing(pull), func(i int) func(time.Duration) State {
			return with(busy(i, pull), func(_ time.Duration, s *State) { s.Fill, s.Full = 1, 0.05 })
		})),
	}, "decode-4", "decode-5")

	small, large := reads(at(128*kib, 8*gb, 60)), reads(at(64*mib, 12*gb, 3))
	list.incident("One tier of the storage degrades: restored conversations wait, the others don't.", Fleet{
		Name: "storage gets slow for large reads only", Want: []Want{{diagnose.JobSlower, ""}},
		Members: on("tiered", 8, 2, after(everyone, doing(small, large),
			doing(small, slowed(large, 6)))),
	})

	list.incident("After the failover of etcd, some workers keep metadata of agents that no longer exist: half of their requests are computed twice.",
		Fleet{
			Name: "split brain after a failover", Want: wants(diagnose.SomeFail, "decode-4", "decode-5", "decode-6", "decode-7"),
			Members: on("decode", 8, 2, after(func(i int) bool { return i >= 4 }, doing(pull), func(i int) func(time.Duration) State {
				return with(busy(i, times(0.5, pull)...), func(_ time.Duration, s *State) {
					s.Errors = map[string]float64{"not_found": 12}
				})
			})),
		}, "decode-4", "decode-5", "decode-6", "decode-7")

	list.incident("The connector is deadlocked: its thread for heartbeats lives, and requests on this worker wait forever.", Fleet{
		Name: "a deadlock behind living heartbeats", Want: wants(diagnose.Stalled, "decode-6"),
		Members: on("decode", 8, 2, after(only(6), doing(pull, heartbeat()),
			func(int) func(time.Duration) State { return always(heartbeat()) })),
	}, "decode-6")

	list.incident("A module overheats; the node must be drained before it fails.", Fleet{
		Name: "a link degrades within 20 minutes", Want: wants(diagnose.Straggler, "decode-9"),
		Members: on("decode", 10, 1, after(only(9), doing(pull), func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				return busy(i, slowed(pull, 1+3*ramp(t, Begin, 20*time.Minute)))(t)
			}
		})),
		Length: Begin + 25*time.Minute, Within: 25 * time.Minute,
	}, "decode-9")

	list.incident("A dirty connector: packets are lost and sent again after a time-out. Most transfers are fine, one in twelve isn't.", Fleet{
		Name: "retransmissions delay one transfer in twelve", Want: wants(diagnose.Straggler, "decode-2"),
		Members: on("decode", 10, 1, after(only(2), doing(pull),
			doing(append(times(11./12, pull), times(1./12, slowed(pull, 50))...)...))),
	}, "decode-2")

	list.incident("The pods' CPU limit throttles them: a transfer spends most of its time before it is posted.", Fleet{
		Name: "posting takes long on a throttled host", Want: append(wants(diagnose.Straggler, "decode-6", "decode-7", "decode-8"), wants(diagnose.PostBound, "decode-6", "decode-7", "decode-8")...),
		Members: on("decode", 12, 3, after(func(i int) bool { return i/3 == 2 }, doing(pull), func(i int) func(time.Duration) State {
			throttled := pull
			throttled.Post += 2 * time.Millisecond
			throttled.Time += 2 * time.Millisecond
			return busy(i, throttled)
		})),
	}, "decode-6", "decode-7", "decode-8")

	restore := reads(at(4*mib, 6*gb, 10))
	list.incident("The disk is full: nothing new is kept, and what is kept grows old.", Fleet{
		Name: "writes to a full disk fail, and reads go on", Want: append([]Want{{diagnose.Failing, ""}}, wants(diagnose.Stalled, "offload-5")...),
		Members: on("offload", 6, 1, after(only(5), doing(at(4*mib, 5*gb, 12), restore), func(i int) func(time.Duration) State {
			return with(busy(i, restore), func(_ time.Duration, s *State) { s.Errors = map[string]float64{"backend": 12} })
		})),
	}, "offload-5")

	saves := func(took time.Duration) func(int) func(time.Duration) State {
		return func(int) func(time.Duration) State {
			return func(t time.Duration) State { // four shards every two minutes
				if t%(2*time.Minute) < 30*time.Second {
					return State{Loads: []Load{{Size: 8 << 30, Time: took, Post: time.Millisecond, Rate: 4. / 30}}}
				}
				return State{}
			}
		}
	}
	list.incident("The shard of one rank takes 20 times as long, and training waits for it at each save.", Fleet{
		Name: "one rank saves its checkpoints slowly", Want: wants(diagnose.Slower, "train-3"),
		Members: on("train", 8, 4, after(only(3), saves(time.Second), saves(20*time.Second))),
	}, "train-3")

	born := on("decode", 8, 1, func(i int) func(time.Duration) State {
		return func(t time.Duration) State {
			s := busy(i, pull)(t)
			switch {
			case i == 7 && t >= Begin:
				return State{Up: diagnose.No}
			case t >= Begin:
				s.Loads = times(8./7, s.Loads...)
			}
			return s
		}
	})
	replacement := born[7]
	replacement.Name, replacement.Pod, replacement.Host = "decode-8", "decode-8", "gpu-08"
	replacement.Do = func(t time.Duration) State { return State{Absent: t < Begin+time.Minute, Memory: 64 << 30} }
	list.incident("The pod was moved to a node without a working fabric. It is ready, gets requests, and none ever completes.", Fleet{
		// No alert can tell it from a spare agent.
		Name: "a replaced pod never transfers", Want: wants(diagnose.Idle, "decode-8"), Members: append(born, replacement),
	})

	list.incident("All writers send to the same new storage node. Writes queue behind each other; reads are as fast as ever.", Fleet{
		Name: "incast slows writes only", Want: []Want{{diagnose.JobSlower, ""}},
		Members: on("offload", 8, 2, after(everyone, doing(push, reads(at(2*mib, 40*gb, 40))),
			doing(slowed(push, 5), reads(at(2*mib, 40*gb, 40))))),
	})

	rare := reads(at(16*mib, 20*gb, 0.5))
	list.incident("A small tenant is a customer, too: a third of its few requests fails.", Fleet{
		Name: "a third of few transfers fails", Want: []Want{{diagnose.Failing, ""}},
		Members: on("tenant", 4, 2, after(only(0), doing(rare), func(i int) func(time.Duration) State {
			return with(busy(i, times(2./3, rare)...), func(_ time.Duration, s *State) { s.Errors = map[string]float64{"backend": 0.17} })
		})),
	}, "tenant-0")

	return append(list, unseen()...)
}

// HealthyStrangers returns healthy fleets by the same author.
func HealthyStrangers() []Fleet { //nolint:funlen // a table
	pull := reads(at(8*mib, 45*gb, 25))
	push := at(2*mib, 40*gb, 40)
	var list explained

	list.healthy("The evening needs fewer workers; each is drained, idles while its last users read, and exits.", Fleet{
		Name: "drains at dusk", Warns: true,
		Members: on("decode", 10, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				left := 1 - 0.45*ramp(t, 20*time.Minute, time.Hour)
				gone := func(k int) time.Duration { return Begin + time.Duration(k)*8*time.Minute }
				serving := 10.
				for k := range 3 {
					serving -= ramp(t, gone(k), time.Minute)
				}
				if i >= 7 {
					at := gone(9 - i)
					switch {
					case t >= at+10*time.Minute:
						return State{Up: diagnose.No}
					case t >= at+time.Minute:
						return State{}
					}
					left *= 1 - ramp(t, at, time.Minute)
				}
				return State{Loads: times(left*10/serving, busy(i, pull)(t).Loads...)}
			}
		}),
	})

	list.healthy("The load doubles, and the autoscaler adds workers, whose caches are cold at first.", Fleet{
		Name: "scale-up with cold caches",
		Members: on("decode", 12, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				load := 1 + ramp(t, 30*time.Minute, 15*time.Minute)
				start := Begin + time.Duration(i-6)*90*time.Second
				if i < 6 {
					return State{Loads: times(load*(1-0.4*ramp(t, Begin, 12*time.Minute)), busy(i, pull)(t).Loads...)}
				}
				if t < start {
					return State{Absent: true}
				}
				return State{Loads: times(load*0.6*ramp(t, start+time.Minute, 4*time.Minute), busy(i, pull)(t).Loads...)}
			}
		}),
	})

	var rolling []Member
	for i := range 12 {
		end := 30*time.Minute + time.Duration(i)*3*time.Minute
		one := on("decode", 12, 2, func(i int) func(time.Duration) State { return busy(i, pull) })[i]
		old, fresh := one, one
		old.Name, old.Pod = fmt.Sprintf("decode-7d9f-%02d", i), fmt.Sprintf("decode-7d9f-%02d", i)
		fresh.Name, fresh.Pod = strings.Replace(old.Name, "7d9f", "b51c", 1), strings.Replace(old.Pod, "7d9f", "b51c", 1)
		old.Do = func(t time.Duration) State {
			if t >= end {
				return State{Up: diagnose.No}
			}
			if t >= end-45*time.Second {
				return State{} // is draining
			}
			return one.Do(t)
		}
		fresh.Do = func(t time.Duration) State {
			if t < end-90*time.Second {
				return State{Absent: true}
			}
			return State{Loads: times(ramp(t, end-30*time.Second, time.Minute), one.Do(t).Loads...)}
		}
		rolling = append(rolling, old, fresh)
	}
	list.healthy("A new image rolls out, one pod after the other.", Fleet{Name: "a rolling upgrade", Members: rolling})

	list.healthy("Users get up: six times the load within an hour, and transfers queue a little at the peak.", Fleet{
		Name: "a morning peak",
		Members: on("decode", 8, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				up := ramp(t, 15*time.Minute, time.Hour)
				return State{Loads: times(1+5*up, busy(i, slowed(pull, 1+0.6*up*up))(t).Loads...)}
			}
		}),
	})

	list.healthy("A job of 32 agents starts: registrations take minutes, then there are tests, then users come.", Fleet{
		Name: "a cold start of a whole job",
		Members: on("fresh", 16, 8, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				start := 30*time.Minute + time.Duration(i)*5*time.Second
				if t < start {
					return State{Absent: true}
				}
				s := State{Memory: uint64(ramp(t, start, 5*time.Minute) * (128 << 30))}
				switch {
				case during(t, start+6*time.Minute, time.Minute):
					s.Loads = []Load{slowed(at(64*kib, 10*gb, 5), 4)}
				case t >= start+12*time.Minute:
					s.Loads = times(ramp(t, start+12*time.Minute, 20*time.Minute), busy(i, pull)(t).Loads...)
				}
				return s
			}
		}),
	})

	list.healthy("Prompts got longer, so the planner turns decode workers into prefill workers, and two back later.", Fleet{
		Name: "a planner changes roles", Warns: true,
		Members: on("worker", 12, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				away := func(i int, t time.Duration) float64 {
					switch {
					case i < 8:
						return 0
					case i < 10:
						return ramp(t, Begin, 30*time.Second) - ramp(t, Begin+20*time.Minute, 2*time.Minute)
					}
					return ramp(t, Begin+time.Duration(i-9)*time.Minute, 30*time.Second)
				}
				present := 0.
				for k := range 12 {
					present += 1 - away(k, t)
				}
				return State{Loads: times(12/present*(1-away(i, t)), busy(i, pull)(t).Loads...)}
			}
		}),
	})

	list.healthy("A session stays on its worker. Some workers have long conversations, some have none for half an hour.", Fleet{
		Name: "sticky sessions", Warns: true,
		Members: on("sticky", 9, 3, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				slot := int(t/(10*time.Minute)) + 3*i
				share := []float64{1, 2, 0, 0, 4, 0.5, 1, 0, 3, 0.2, 1.5}[(slot*7+i*i)%11]
				return State{Loads: times(share, busy(i, pull)(t).Loads...)}
			}
		}),
	})

	list.healthy("Agents of a batch of tree searches sleep, and then everything happens at once.", Fleet{
		Name: "bursts after minutes of silence",
		Members: on("search", 8, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				period := time.Duration(4+i%3*3) * time.Minute
				if (t+time.Duration(i)*73*time.Second)%period < 30*time.Second {
					return State{Loads: times(12, busy(i, pull)(t).Loads...), Fill: 0.4}
				}
				return State{}
			}
		}),
	})

	list.healthy("A checkpoint every ten minutes, staggered over the ranks, and nothing between.", Fleet{
		Name: "checkpoints of few large transfers",
		Members: on("train", 8, 4, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				if (t+time.Duration(i)*15*time.Second)%(10*time.Minute) < 45*time.Second {
					return State{Loads: []Load{{Size: 16 << 30, Time: 3 * time.Second, Post: time.Millisecond, Rate: 2. / 15}}}
				}
				return State{}
			}
		}),
	})

	list.healthy("A warm standby only sends heartbeats, and does what it's there for.", Fleet{
		Name: "a standby among busy workers",
		Members: on("decode", 8, 2, func(i int) func(time.Duration) State {
			if i >= 6 {
				return always(heartbeat())
			}
			return busy(i, pull, heartbeat())
		}),
	})

	list.healthy("Two models share hosts and a service name; the cache blocks of one are 32 times as large.", Fleet{
		Name: "mixed models on one host",
		Members: on("models", 12, 6, func(i int) func(time.Duration) State {
			if i%2 == 0 {
				return busy(i, reads(at(16*mib, 45*gb, 10)))
			}
			return func(t time.Duration) State { // whose load moves from one to the other at lunch
				return State{Loads: times(1+2*ramp(t, 30*time.Minute, 20*time.Minute), busy(i, reads(at(512*kib, 45*gb, 80)))(t).Loads...)}
			}
		}),
	})

	list.healthy("A deployment restarts all workers of a job; the first transfers set up connections, and are slow.", Fleet{
		Name: "warm-up after a deployment",
		Members: on("decode", 8, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				back := Begin + 2*time.Minute + time.Duration(i%4)*15*time.Second
				switch {
				case t < Begin:
					return busy(i, pull)(t)
				case t < back:
					return State{Up: diagnose.No}
				}
				warm := ramp(t, back, 3*time.Minute)
				return State{
					Restart: t == back,
					Loads:   times(0.1+0.9*warm, busy(i, slowed(pull, 5-4*warm))(t).Loads...),
				}
			}
		}),
	})

	list.healthy("Rollouts run between updates of the weights, which are large and come at once.", Fleet{
		Name: "weight updates of reinforcement learning",
		Members: on("rollout", 8, 4, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				if t%(8*time.Minute) < 30*time.Second {
					return State{Loads: []Load{reads(at(512*mib, 25*gb, 8))}, Fill: 0.3}
				}
				return busy(i, reads(at(1*mib, 40*gb, 12)))(t)
			}
		}),
	})

	list.healthy("A nightly batch is done: each worker exits when it has nothing left.", Fleet{
		Name: "a batch ends",
		Members: on("batch", 10, 5, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				end := Begin + time.Duration(i*i%11)*30*time.Second
				if t >= end+30*time.Second {
					return State{Up: diagnose.No}
				}
				if t >= end {
					return State{}
				}
				return busy(i, push, pull)(t)
			}
		}),
	})

	list.healthy("Users press stop: some transfers are always canceled, and more of them when many users are there.", Fleet{
		Name: "users cancel requests",
		Members: on("chat", 8, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				up := ramp(t, 20*time.Minute, 40*time.Minute)
				return State{
					Loads:  times(1+up, busy(i, pull)(t).Loads...),
					Errors: map[string]float64{"canceled": (1 + up) * 25 * (0.06 + 0.06*up) * wave(i+3, t)},
				}
			}
		}),
	})

	list.healthy("Few conversations come back from an object store. That takes long, and always has.", Fleet{
		Name: "one read in twenty comes from an object store", Warns: true, // by a tool that has watched for minutes
		Members: on("tiered", 8, 2, func(i int) func(time.Duration) State {
			deep := reads(Load{Size: 8 * mib, Time: 180 * time.Millisecond, Post: 50 * time.Microsecond, Rate: 1.3})
			return func(t time.Duration) State {
				s := busy(i, pull)(t)
				s.Loads = append(s.Loads, times(wave(i+5, t)*(0.7+0.6*math.Abs(math.Sin(t.Minutes()/11+float64(i)))), deep)...)
				return s
			}
		}),
	})

	spot := on("spot", 16, 1, func(i int) func(time.Duration) State {
		reclaimed := Begin + 2*time.Minute
		return func(t time.Duration) State {
			lost := 3*ramp(t, reclaimed, 30*time.Second) - 3*ramp(t, reclaimed+7*time.Minute, 2*time.Minute)
			load := 12 / (12 - lost)
			switch {
			case i < 9:
				return State{Loads: times(load, busy(i, pull)(t).Loads...)}
			case i < 12 && t < reclaimed+30*time.Second:
				return busy(i, pull)(t)
			case i < 12:
				return State{Up: diagnose.No}
			case i == 15 || t < reclaimed+6*time.Minute:
				return State{Absent: true}
			}
			return State{Loads: times(ramp(t, reclaimed+7*time.Minute, 2*time.Minute), busy(i, pull)(t).Loads...)}
		}
	})
	list.healthy("The cloud takes three spot nodes back, and gives three others six minutes later. Nobody waits.",
		Fleet{Name: "spot nodes come and go", Members: spot})

	list.healthy("Buffers are registered and deregistered as conversations come and go; more of them at noon.", Fleet{
		Name: "registrations follow the load",
		Members: on("cache", 8, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				load := 1 + ramp(t, 10*time.Minute, 40*time.Minute) - ramp(t, 60*time.Minute, 30*time.Minute)
				s := State{Loads: times(load, busy(i, pull)(t).Loads...)}
				s.Memory = uint64((32*load + 6*wave(i+1, t)) * float64(1<<30))
				return s
			}
		}),
	})

	list.healthy("The Collectors are upgraded, one host after the other; what was in the rings meanwhile is read afterwards.", Fleet{
		Name: "a rolling upgrade of the Collectors",
		Members: on("decode", 12, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				s := busy(i, pull)(t)
				from := Begin + time.Duration(i/2)*2*time.Minute
				s.Absent = during(t, from, 45*time.Second)
				if during(t, from+45*time.Second, Every) {
					s.Fill = 0.8
				}
				return s
			}
		}),
	})

	list.healthy("A development cluster: a few transfers per minute, when a developer tries something.", Fleet{
		Name: "hardly any load",
		Members: on("dev", 4, 2, func(i int) func(time.Duration) State {
			return func(t time.Duration) State {
				if int(t.Minutes())*(i+3)%7 < 2 && int(t/(15*time.Minute))%4 != i {
					return State{Loads: []Load{reads(at(4*mib, []float64{20, 40, 30, 10}[int(t.Minutes())%4]*gb, 0.2))}}
				}
				return State{}
			}
		}),
	})

	return append(list, unseenHealthy()...)
}
