// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gb  = 1e9
)

// at returns the load of transfers of a size over a link, in bytes per second, with a latency of 10 µs.
func at(size uint64, speed, rate float64) Load {
	const latency, post = 10 * time.Microsecond, 4 * time.Microsecond
	return Load{Size: size, Time: latency + time.Duration(float64(size)/speed*1e9), Post: post, Rate: rate}
}

// usual is the load of an agent that moves caches over a link of 400 Gbit/s.
func usual() Load { return at(4*mib, 45*gb, 30) }

// reads returns a load whose transfers are reads.
func reads(l Load) Load {
	l.Read = true
	return l
}

// heartbeat is a small transfer every second.
func heartbeat() Load { return at(64, 1*gb, 1) }

func always(loads ...Load) func(time.Duration) State {
	return func(time.Duration) State { return State{Loads: loads} }
}

// then does one thing until incidents begin, and then another.
func then(before, after func(time.Duration) State) func(time.Duration) State {
	return func(t time.Duration) State {
		if t < Begin {
			return before(t)
		}
		return after(t)
	}
}

// slowed divides the speed of a load.
func slowed(l Load, by float64) Load {
	l.Time = time.Duration(float64(l.Time) * by)
	return l
}

// members returns agents of a job on two hosts.
func members(service string, n int, do func(i int) func(time.Duration) State) []Member {
	list := make([]Member, n)
	for i := range list {
		list[i] = Member{
			Identity: diagnose.Identity{
				Job: diagnose.Job{Service: service}, Host: fmt.Sprintf("node-%d", i%2), Name: fmt.Sprintf("%s-%d", service, i),
			},
			Do: do(i),
		}
	}
	return list
}

// except returns agents that all do the same, except one.
func except(service string, n, which int, all, one func(time.Duration) State) []Member {
	return members(service, n, func(i int) func(time.Duration) State {
		if i == which {
			return one
		}
		return all
	})
}

func same(service string, n int, do func(time.Duration) State) []Member {
	return except(service, n, -1, do, nil)
}

// with adds something to what an agent does.
func with(do func(time.Duration) State, change func(t time.Duration, s *State)) func(time.Duration) State {
	return func(t time.Duration) State {
		s := do(t)
		change(t, &s)
		return s
	}
}

func during(t, from, length time.Duration) bool { return t >= from && t < from+length }

// onHosts moves agents to other hosts, some to each.
func onHosts(list []Member, each int) []Member {
	for i := range list {
		list[i].Host = fmt.Sprintf("node-%d", i/each)
	}
	return list
}

// since changes what an agent does after an incident has begun.
func since(do func(time.Duration) State, change func(t time.Duration, s *State)) func(time.Duration) State {
	return with(do, func(t time.Duration, s *State) {
		if t >= Begin {
			change(t-Begin, s)
		}
	})
}

// scaled returns a load with another rate.
func scaled(l Load, by float64) Load {
	l.Rate *= by
	return l
}

// busy returns a load that varies as that of users does: in waves and from sample to sample.
func busy(i int, loads ...Load) func(time.Duration) State {
	return func(t time.Duration) State { return State{Loads: times(wave(i, t), loads...)} }
}

// wave is the load of an agent at some time, compared with the usual one.
func wave(i int, t time.Duration) float64 {
	_, noise := math.Modf(math.Abs(math.Sin(float64(i)*78.233+t.Minutes()*12.9898)) * 43758.5453)
	return 1 + 0.12*math.Sin(2*math.Pi*t.Minutes()/7+float64(i)) + 0.3*(noise-0.5)
}

func times(by float64, loads ...Load) []Load {
	list := make([]Load, len(loads))
	for i, l := range loads {
		l.Rate *= by
		list[i] = l
	}
	return list
}

// on returns agents of a job, some per host.
func on(service string, n, perHost int, do func(i int) func(time.Duration) State) []Member {
	list := members(service, n, do)
	for i := range list {
		list[i].Host = fmt.Sprintf("gpu-%02d", i/perHost)
		list[i].Pod = fmt.Sprintf("%s-%d", service, i)
	}
	return list
}

// after does what all agents do, and something else from the begin of the incident on if it is one of those affected.
func after(affected func(i int) bool, before, incident func(i int) func(time.Duration) State) func(int) func(time.Duration) State {
	return func(i int) func(time.Duration) State {
		if affected(i) {
			return then(before(i), incident(i))
		}
		return before(i)
	}
}

func only(which ...int) func(int) bool {
	return func(i int) bool { return slices.Contains(which, i) }
}

func everyone(int) bool { return true }

func doing(loads ...Load) func(int) func(time.Duration) State {
	return func(i int) func(time.Duration) State { return busy(i, loads...) }
}

// ramp goes from 0 to 1 in some time.
func ramp(t, from, length time.Duration) float64 {
	return min(1, max(0, float64(t-from)/float64(length)))
}

// affects returns what all agents of a job do, and what some do once incidents begin.
func affects(which func(int) bool, loads, incident []Load, change func(t time.Duration, s *State)) func(int) func(time.Duration) State {
	return after(which, doing(loads...), func(i int) func(time.Duration) State {
		do := busy(i, incident...)
		if change == nil {
			return do
		}
		return with(do, change)
	})
}

func failures(kind string, rate float64) func(time.Duration, *State) {
	return func(_ time.Duration, s *State) { s.Errors = map[string]float64{kind: rate} }
}

// each returns what each agent does at each time.
func each(do func(i int, t time.Duration) State) func(int) func(time.Duration) State {
	return func(i int) func(time.Duration) State { return func(t time.Duration) State { return do(i, t) } }
}

// explained is fleets, each with the reason why an operator wants to know about it or doesn't.
type explained []Fleet

// incident adds one with agents that must be named, or else their job.
func (l *explained) incident(why string, f Fleet, culprits ...string) {
	f.Why, f.Length = why, cmp.Or(f.Length, Begin+15*time.Minute)
	for _, name := range culprits {
		f.Alerts = append(f.Alerts, Alert{"", "nixl_agent_name", name})
	}
	if len(f.Alerts) == 0 && !slices.ContainsFunc(f.Want, func(w Want) bool { return w.Agent != "" }) {
		f.Alerts = []Alert{{"", "service_name", f.Members[0].Service}}
	}
	*l = append(*l, f)
}

func (l *explained) healthy(why string, f Fleet) {
	f.Why, f.Length = why, cmp.Or(f.Length, 90*time.Minute)
	*l = append(*l, f)
}
