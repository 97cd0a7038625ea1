// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleets has fleets of agents for tests: incidents, each with what must be found, and
// healthy fleets, about which nothing may be said. The tests of internal/diagnose and of the alerts
// use the same fleets.
package fleets

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
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
	Read bool    // default: writes
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
	Memory  uint64             // registered, in bytes

	Restarted bool // the agent restarts, and its totals go on
	NewStore  bool // likewise, but its totals are a new stream, as those of a prometheus_mp store are
}

// Member is an agent of a fleet.
type Member struct {
	diagnose.Identity
	Do func(at time.Duration) State
}

// Want is a finding that an incident must have.
type Want struct {
	Kind  diagnose.Kind
	Agent string // its name; empty for a finding about a job
}

// Alert is an alert that an incident must raise, and what it must name. Without a name, it may be any alert.
type Alert struct{ Name, Label, Value string }

// Fleet is a number of agents over some time.
type Fleet struct {
	Name     string
	Members  []Member
	Length   time.Duration
	Requests float64 // running in the inference engine; 0 if there is no metric
	Why      string  // an operator wants to know about it, or doesn't

	Want     []Want        // findings of package diagnose about an incident; none if only the alerts can know
	Alerts   []Alert       // about an incident; none if only the tools say it
	Long     bool          // only the long windows of the alerts show it
	Critical bool          // one of the alerts is critical
	Lasts    bool          // the alerts must still fire at the end
	Within   time.Duration // after Begin, in which the alerts must fire; default: ten minutes

	Warns bool // a healthy fleet that may raise warnings, but no critical alert
}

// Begin is when incidents begin, and Found is when they must be found.
const (
	Begin = 40 * time.Minute
	Found = Begin + 10*time.Minute
)

// staleAfter is how long an agent is reported that has exited, as the receiver's default is.
const staleAfter = 5 * time.Minute

// epoch is when each fleet begins.
var epoch = time.Unix(0, 0).UTC()

// Reading is the state of an agent, with what only the metrics have.
type Reading struct {
	diagnose.Agent
	Stream int                   // 0, unless the agent had other stores before
	Speeds [2]diagnose.Histogram // of writes and reads
}

// Frames returns the fleet's frames.
func (f *Fleet) Frames() []*diagnose.Frame { return f.Between(0, f.Length, Every) }

// Between returns frames of some time, as a tool has that is started then.
func (f *Fleet) Between(from, to, every time.Duration) (frames []*diagnose.Frame) {
	for i, readings := range f.readings(from, to, every) {
		frame := &diagnose.Frame{Time: epoch.Add(from + time.Duration(i)*every)}
		for n := range readings {
			frame.Agents = append(frame.Agents, readings[n].Agent)
		}
		frames = append(frames, frame)
	}
	return frames
}

// Readings returns the readings of each sample.
func (f *Fleet) Readings() [][]Reading { return f.readings(0, f.Length, Every) }

func (f *Fleet) readings(from, to, every time.Duration) (all [][]Reading) {
	runs := make([]*run, len(f.Members))
	for i := range f.Members {
		runs[i] = newRun(fmt.Sprintf("%03d", i), f.Members[i].Identity)
		runs[i].every, runs[i].left = every, from
		runs[i].remember(f.Members[i].Do, from)
	}
	for at := from; at <= to; at += every {
		var readings []Reading
		for i := range f.Members {
			if r := runs[i].step(at, f.Members[i].Do(at)); r != nil {
				readings = append(readings, *r)
			}
		}
		all = append(all, readings)
	}
	return all
}

// run is the totals of an agent so far.
type run struct {
	agent diagnose.Identity
	left  time.Duration // since when it has exited
	every time.Duration // between two steps
	rng   *rand.Rand
	due   []float64 // fractions of transfers that aren't complete
	sums  Reading
	part  map[string]float64
}

func newRun(id string, a diagnose.Identity) *run {
	h := fnv.New64a()
	fmt.Fprint(h, a)
	a.ID = id
	r := &run{agent: a, rng: rand.New(rand.NewPCG(h.Sum64(), 1))}
	r.restart()
	return r
}

func (r *run) restart() {
	ring := &diagnose.Ring{Capacity: 4096, ConsumerUnknown: true}
	if r.sums.Ring != nil {
		ring.Restarts = r.sums.Ring.Restarts
	}
	r.sums = Reading{Stream: r.sums.Stream, Agent: diagnose.Agent{
		Identity: r.agent, Errors: make(map[string]uint64), Ring: ring,
		Sizes: histogram(semconv.TransferSize.Bounds), Times: histogram(semconv.TransferDuration.Bounds),
	}}
	for i := range r.sums.Speeds {
		r.sums.Speeds[i] = histogram(semconv.TransferThroughput.Bounds)
	}
	r.part = make(map[string]float64)
}

// remember sets what the agent's ring has from before a time.
func (r *run) remember(do func(time.Duration) State, before time.Duration) {
	const most, step = 4095 / 4, 5 * time.Second
	var newest []Load // with the number of transfers instead of a rate
	n, due := 0., 0.
	for at := before - step; at >= 0 && n < most; at -= step {
		s := do(at)
		if s.Absent || s.Up == diagnose.No {
			break
		}
		for _, l := range s.Loads {
			due += l.Rate * step.Seconds()
			l.Rate = min(math.Floor(due), most-n)
			n, due = n+l.Rate, due-math.Floor(due)
			newest = append(newest, l)
		}
		if s.Restart || s.Restarted || s.NewStore {
			break
		}
	}
	r.sums.Before = uint64(n)
	for half := math.Floor(n / 2); half > 0; newest = newest[:len(newest)-1] {
		l := newest[len(newest)-1]
		count := min(half, l.Rate)
		half -= count
		m := &r.sums.Remembered[boolean(l.Read)]
		m.Transfers, m.Bytes, m.Seconds = m.Transfers+uint64(count), m.Bytes+uint64(count)*l.Size, m.Seconds+count*l.Time.Seconds()
	}
}

func histogram(bounds []float64) diagnose.Histogram {
	return diagnose.Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func add(h diagnose.Histogram, v float64, n uint64) { h.Counts[sort.SearchFloat64s(h.Bounds, v)] += n }

// step adds a state to the totals. It returns nil if the agent is absent.
func (r *run) step(at time.Duration, s State) *Reading {
	if s.NewStore {
		r.sums.Stream++
	}
	if s.Restart || s.NewStore {
		r.restart()
		r.sums.Start = epoch.Add(at)
	}
	if r.sums.Start.IsZero() && !s.Absent {
		r.sums.Start = epoch.Add(at) // the Collector has found it
	}
	ring, memory := *r.sums.Ring, int64(s.Memory)
	r.sums.Up, r.sums.Memory, r.sums.Ring = s.Up, &memory, &ring
	ring.Restarts += boolean(s.Restarted)
	if s.Up == diagnose.Unknown {
		r.sums.Up = diagnose.Yes
	}
	ring.Peak = int(cmp.Or(s.Fill, 0.2) * 4095)
	for len(r.due) < len(s.Loads) {
		r.due = append(r.due, r.rng.Float64())
	}
	for i, l := range s.Loads {
		r.due[i] += l.Rate * r.every.Seconds()
		n := uint64(r.due[i])
		r.due[i] -= float64(n)
		const parts = 4 // with different times
		for p := range uint64(parts) {
			share := n/parts + boolean(p < n%parts)
			took := time.Duration(float64(l.Time) * (0.85 + 0.3*r.rng.Float64()))
			r.sums.Post += float64(share) * l.Post.Seconds()
			add(r.sums.Sizes, float64(l.Size), share)
			add(r.sums.Times, took.Seconds(), share)
			d := &r.sums.Moved[boolean(l.Read)]
			d.Bytes += share * l.Size
			d.Transfers += share
			d.Seconds += float64(share) * took.Seconds()
			add(r.sums.Speeds[boolean(l.Read)], float64(l.Size)/took.Seconds(), share)
		}
	}
	if s.Up != diagnose.No {
		r.left = at
	}
	for kind, rate := range s.Errors {
		r.sums.Errors[kind] += r.whole(kind, rate)
	}
	ring.Saturations += r.whole("/full", s.Full)
	ring.Foreign += r.whole("/foreign", s.Foreign)
	if s.Absent || at-r.left >= staleAfter {
		return nil
	}
	reading := r.sums
	reading.Errors = maps.Clone(r.sums.Errors)
	reading.Sizes.Counts = slices.Clone(r.sums.Sizes.Counts)
	reading.Times.Counts = slices.Clone(r.sums.Times.Counts)
	for i := range reading.Speeds {
		reading.Speeds[i].Counts = slices.Clone(r.sums.Speeds[i].Counts)
	}
	return &reading
}

// whole returns the whole number that a rate adds in a step.
func (r *run) whole(name string, rate float64) uint64 {
	r.part[name] += rate * r.every.Seconds()
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
