// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"fmt"
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
