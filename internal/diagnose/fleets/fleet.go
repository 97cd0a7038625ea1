// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleets has fleets of agents for tests: incidents, each with what must be found, and
// healthy fleets, about which nothing may be said. The tests of internal/diagnose and of the alerts
// use the same fleets.
package fleets

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Every is the time between two samples.
const Every = 15 * time.Second

// Load is a kind of transfers of an agent.
type Load struct {
	Size uint64 // bytes
	Time time.Duration
	Post time.Duration
	Rate float64 // per second
}

// State is what an agent does during a step.
type State struct {
	Loads   []Load
	Errors  map[string]float64 // per second, by type
	Up      diagnose.Up        // default: Yes
	Absent  bool               // the agent isn't reported
	Restart bool               // its totals start again at 0
	Fill    float64            // of the ring; default: 0.2
	Full    float64            // times per second that the ring is full
	Foreign float64            // reads of another consumer per second
}

// Member is an agent of a fleet.
type Member struct {
	diagnose.Agent
	Do func(at time.Duration) State
}

// Want is a finding that an incident must have.
type Want struct {
	Kind  diagnose.Kind
	Agent string // its name; empty for a finding about a job
}

// Fleet is a number of agents over some time.
type Fleet struct {
	Name    string
	Members []Member
	Length  time.Duration
	Want    []Want // at the end; a healthy fleet has none, at any time
}

// Begin is when incidents begin, and Found is when they must be found.
const (
	Begin = 40 * time.Minute
	Found = Begin + 5*time.Minute
)

// Samples returns the fleet's samples.
func (f *Fleet) Samples() []diagnose.Sample {
	runs := make([]*run, len(f.Members))
	for i := range f.Members {
		runs[i] = newRun(f.Members[i].Agent)
	}
	var samples []diagnose.Sample
	start := time.Unix(0, 0).UTC()
	for at := time.Duration(0); at <= f.Length; at += Every {
		s := diagnose.Sample{At: start.Add(at)}
		for i := range f.Members {
			if r := runs[i].step(f.Members[i].Do(at)); r != nil {
				s.Agents = append(s.Agents, *r)
			}
		}
		samples = append(samples, s)
	}
	return samples
}

// run is the totals of an agent so far.
type run struct {
	agent diagnose.Agent
	rng   *rand.Rand
	due   []float64 // fractions of transfers that aren't complete
	sums  diagnose.Reading
	part  map[string]float64
}

func newRun(a diagnose.Agent) *run {
	h := fnv.New64a()
	fmt.Fprint(h, a)
	r := &run{agent: a, rng: rand.New(rand.NewPCG(h.Sum64(), 1))}
	r.restart()
	return r
}

func (r *run) restart() {
	r.sums = diagnose.Reading{
		Agent: r.agent, Errors: make(map[string]uint64),
		Sizes: histogram(semconv.TransferSize.Bounds), Times: histogram(semconv.TransferDuration.Bounds),
	}
	r.part = make(map[string]float64)
}

func histogram(bounds []float64) diagnose.Histogram {
	return diagnose.Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func add(h diagnose.Histogram, v float64, n uint64) { h.Counts[sort.SearchFloat64s(h.Bounds, v)] += n }

// step adds a state to the totals. It returns nil if the agent is absent.
func (r *run) step(s State) *diagnose.Reading {
	if s.Restart {
		r.restart()
	}
	r.sums.Up, r.sums.Fill = s.Up, s.Fill
	if s.Up == diagnose.Unknown {
		r.sums.Up = diagnose.Yes
	}
	if s.Fill == 0 {
		r.sums.Fill = 0.2
	}
	for len(r.due) < len(s.Loads) {
		r.due = append(r.due, r.rng.Float64())
	}
	for i, l := range s.Loads {
		r.due[i] += l.Rate * Every.Seconds()
		n := uint64(r.due[i])
		r.due[i] -= float64(n)
		const parts = 4 // with different times
		for p := range uint64(parts) {
			share := n/parts + boolean(p < n%parts)
			took := time.Duration(float64(l.Time) * (0.85 + 0.3*r.rng.Float64()))
			r.sums.Requests += share
			r.sums.Bytes += share * l.Size
			r.sums.Busy += time.Duration(share) * took
			r.sums.Post += time.Duration(share) * l.Post
			add(r.sums.Sizes, float64(l.Size), share)
			add(r.sums.Times, took.Seconds(), share)
		}
	}
	for kind, rate := range s.Errors {
		r.sums.Errors[kind] += r.whole(kind, rate)
	}
	r.sums.Saturations += r.whole("/full", s.Full)
	r.sums.Foreign += r.whole("/foreign", s.Foreign)
	if s.Absent {
		return nil
	}
	reading := r.sums
	reading.Errors = maps.Clone(r.sums.Errors)
	reading.Sizes.Counts = slices.Clone(r.sums.Sizes.Counts)
	reading.Times.Counts = slices.Clone(r.sums.Times.Counts)
	return &reading
}

// whole returns the whole number that a rate adds in a step.
func (r *run) whole(name string, rate float64) uint64 {
	r.part[name] += rate * Every.Seconds()
	n := uint64(r.part[name])
	r.part[name] -= float64(n)
	return n
}

func boolean(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
