// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Sample is the state of all agents at one time.
type Sample struct {
	At     time.Time
	Agents []Reading // by path

	// Excluded is the number of rings that the patterns exclude. It is 0 if any agent is
	// included.
	Excluded int
	// Err is why the directory can't be read, or nil.
	Err error
	// Warning is the newest warning about the directory or a file in it, or empty.
	Warning string
}

// Reading is the state of one agent at one time.
type Reading struct {
	Path          string
	Name          string // the path within the directory
	Layout        string
	Capacity      int // slots; the ring holds one event less
	Peak          int // highest number of events in the ring since the previous reading
	Memory        int64
	MemoryUnknown bool // registrations of memory may be missing, so Memory isn't valid
	Alive         procs.Alive
	Lock          Lock
	Totals        Totals
	Failures      []Failure // by status
}

// Failure is the number of errors with one status.
type Failure struct {
	Status string
	Count  uint64
}

// Totals are counters since the agent was first seen. They may wrap around.
type Totals struct {
	Out, In     uint64 // bytes
	Transfers   uint64
	Took        uint64 // total time of the transfers, in microseconds
	Errors      uint64
	Events      uint64
	Dropped     uint64 // events that the agent reports as dropped before they reached the ring
	Saturations uint64 // number of times that the ring was full of new events
	Restarts    uint64
	Torn        uint64 // number of transfers with an event missing in the ring
	Missed      uint64 // number of times that events were missed

	Duration, Post, Throughput []uint64 // histograms with the bounds of this package
}

// Lock is the process that holds the lock of a ring, a consumer of this project. The zero
// value means none. Other readers don't lock rings.
type Lock struct {
	PID  int
	Name string // of the program, or empty if unknown
}

// read converts a snapshot to a reading.
func read(s *drain.Snapshot) Reading {
	t := s.Totals
	memory, known := t.MemoryUsage()
	r := Reading{
		Path: s.Path, Name: s.Name, Layout: s.Layout.String(), Capacity: t.Capacity(),
		Memory: memory, MemoryUnknown: !known, Failures: failures(t),
		Peak: int(t.Utilization()*float64(max(t.Capacity()-1, 0)) + 0.5),
		Totals: Totals{
			Out:         t.Size(tally.Transmit).Total().Lo,
			In:          t.Size(tally.Receive).Total().Lo,
			Transfers:   t.Requests(tally.Transmit).Events + t.Requests(tally.Receive).Events,
			Took:        t.Duration().Total().Lo,
			Dropped:     t.Dropped().Sum.Lo,
			Saturations: t.Saturations(),
			Restarts:    t.Restarts(),
			Torn:        t.TornGroups(),
			Missed:      t.Misses(),
			Duration:    t.Duration().Counts(),
			Post:        t.PostDuration().Counts(),
			Throughput:  sum(t.Throughput(tally.Transmit).Counts(), t.Throughput(tally.Receive).Counts()),
		},
	}
	t.Events(func(_, _ string, n uint64) { r.Totals.Events += n })
	plain, valued := t.Overflow()
	r.Totals.Events += plain.Events + valued.Events
	for _, f := range r.Failures {
		r.Totals.Errors += f.Count
	}
	return r
}

func failures(t *tally.Totals) (list []Failure) {
	for k := ringbuf.TypeErrNotPosted; k <= ringbuf.TypeErrNoTelemetry; k++ {
		if n := t.Errors(k).Sum.Lo; n > 0 {
			list = append(list, Failure{Status: strings.TrimPrefix(k.String(), "agent_err_"), Count: n})
		}
	}
	if n := t.OtherErrors().Lo; n > 0 {
		list = append(list, Failure{Status: "other", Count: n})
	}
	return list
}

// since returns the difference between t and old.
func (t *Totals) since(old *Totals) Totals {
	return Totals{
		Out: t.Out - old.Out, In: t.In - old.In,
		Transfers: t.Transfers - old.Transfers, Took: t.Took - old.Took, Errors: t.Errors - old.Errors, Events: t.Events - old.Events,
		Dropped: t.Dropped - old.Dropped, Saturations: t.Saturations - old.Saturations,
		Restarts: t.Restarts - old.Restarts, Torn: t.Torn - old.Torn, Missed: t.Missed - old.Missed,
		Duration: difference(t.Duration, old.Duration), Post: difference(t.Post, old.Post),
		Throughput: difference(t.Throughput, old.Throughput),
	}
}

// sum adds the counts of two histograms with the same bounds.
func sum(a, b []uint64) []uint64 {
	s := slices.Clone(a)
	for i, n := range b {
		s[i] += n
	}
	return s
}

func difference(a, b []uint64) []uint64 {
	d := make([]uint64, len(a))
	for i := range a {
		d[i] = a[i]
		if i < len(b) {
			d[i] -= b[i]
		}
	}
	return d
}
