// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Sample is the state of all agents at one time.
type Sample struct {
	At     time.Time
	Agents []Reading // by path

	// Excluded is the number of rings that the patterns exclude. It is 0 if any agent is
	// included.
	Excluded int
	// Failed is why the sample couldn't be taken, or nil. Then it has nothing else.
	Failed error
	// Err is why the directory can't be read, or nil.
	Err error
	// Unseen says which processes can't be inspected, if it is unknown whether an agent is running.
	Unseen string
	// Warning is the newest warning about the directory or a file in it, or empty.
	Warning string
}

// Reading is the state of one agent at one time.
type Reading struct {
	ID            string // of the agent; stays if its path changes
	Path          string
	Name          string // the path within the directory, after the pod and the container
	Service       string // service.name of the agent's process; empty if it isn't set or unknown
	Attributes    map[string]string
	Start         time.Time // of the totals
	Layout        string
	Store         bool // the agent has stores of NIXL's prometheus_mp exporter instead of a ring
	Recorded      bool // the reading is from a recording, so the consumer of the ring is unknown
	Capacity      int  // slots; the ring holds one event less
	Peak          int  // highest number of events in the ring since the previous reading
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
	Posted      uint64 // of it, post time
	Errors      uint64
	Events      uint64
	Dropped     uint64 // events that the agent reports as dropped before they reached the ring
	Saturations uint64 // number of times that the ring was full of new events
	Restarts    uint64
	Torn        uint64 // number of transfers with an event missing in the ring
	Missed      uint64 // number of times that events were missed
	Foreign     uint64 // number of times that another program consumed events

	Duration, Post, Throughput, Size []uint64 // histograms with the bounds of this package, or with own

	own struct{ duration, post, throughput, size []float64 } // the bounds of histograms with others
}

// Lock is the process that holds the lock of a ring, a consumer of this project. The zero
// value means none. Other readers don't lock rings.
type Lock struct {
	PID  int
	Name string // of the program, or empty if unknown

	Unknown bool // a process may hold the lock, but it can't be found
}

// read converts the state of an agent to a reading.
func read(a *live.Agent) Reading {
	r := Reading{
		ID: a.ID, Path: a.Path, Name: NameOf(a), Service: a.Attributes[semconv.ServiceName], Attributes: a.Attributes,
		Layout: a.Layout, Store: a.Store, Start: a.Start, MemoryUnknown: true,
	}
	if a.Up != nil {
		r.Alive = procs.No
		if *a.Up {
			r.Alive = procs.Yes
		}
	}
	if g := a.Ring; g != nil {
		r.Capacity, r.Peak = g.Capacity, g.Peak
		r.Totals = Totals{Saturations: g.Saturations, Restarts: g.Restarts, Torn: g.TornGroups, Missed: g.Misses, Foreign: g.ForeignReads}
	}
	from := a.Totals
	if from == nil {
		return r
	}
	if from.Memory != nil {
		r.Memory, r.MemoryUnknown = *from.Memory, false
	}
	t := &r.Totals
	t.Out, t.In, t.Transfers, t.Took, t.Posted = from.Transmitted, from.Received, from.Transfers, from.Busy, from.Post
	t.Events, t.Dropped = from.Events, from.Dropped
	t.own.duration, t.Duration = buckets(bounds, &from.Durations)
	t.own.post, t.Post = buckets(bounds, &from.PostDurations)
	t.own.throughput, t.Throughput = buckets(throughputBounds, &from.Throughput)
	t.own.size, t.Size = buckets(sizeBounds, &from.Sizes)
	for _, status := range slices.Sorted(maps.Keys(from.Errors)) {
		n := from.Errors[status]
		t.Errors += n
		r.Failures = append(r.Failures, Failure{Status: status, Count: n})
	}
	return r
}

// NameOf returns the name of an agent, after those of its pod and container.
func NameOf(a *live.Agent) string {
	const short = 8 // of a UID
	pod := a.Attributes[podName]
	if pod == "" {
		pod = a.Attributes[semconv.K8SPodUID]
		pod = pod[:min(len(pod), short)]
	}
	container := a.Attributes[semconv.K8SContainerName]
	if container == "" {
		container = a.Attributes[semconv.ContainerID]
		container = container[:min(len(container), short)]
	}
	var parts []string
	for _, part := range []string{pod, container, a.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return units.Text(strings.Join(parts, "/"))
}

// Identity describes where the agent runs, as far as it is known.
func (r *Reading) Identity() (parts []string) {
	if r.Service != "" {
		parts = append(parts, "service "+r.Service)
	}
	for _, one := range []struct{ word, key string }{
		{"namespace", podNamespace},
		{"pod", podName},
		{"pod", semconv.K8SPodUID},
		{"container", semconv.K8SContainerName},
		{"container", semconv.ContainerID},
		{"rank", semconv.LocalRank},
		{"pid", semconv.ProcessPID},
	} {
		if value := r.Attributes[one.key]; value != "" {
			parts = append(parts, one.word+" "+value)
		}
	}
	return parts
}

// since returns the difference between t and old. Its histograms have the bounds of this package.
func (t *Totals) since(old *Totals) Totals {
	return Totals{
		Out: t.Out - old.Out, In: t.In - old.In,
		Transfers: t.Transfers - old.Transfers, Took: t.Took - old.Took, Posted: t.Posted - old.Posted, Errors: t.Errors - old.Errors, Events: t.Events - old.Events,
		Dropped: t.Dropped - old.Dropped, Saturations: t.Saturations - old.Saturations,
		Restarts: t.Restarts - old.Restarts, Torn: t.Torn - old.Torn, Missed: t.Missed - old.Missed,
		Foreign:    t.Foreign - old.Foreign,
		Duration:   increase(bounds, t.Duration, t.own.duration, old.Duration, old.own.duration),
		Post:       increase(bounds, t.Post, t.own.post, old.Post, old.own.post),
		Throughput: increase(throughputBounds, t.Throughput, t.own.throughput, old.Throughput, old.own.throughput),
		Size:       increase(sizeBounds, t.Size, t.own.size, old.Size, old.own.size),
	}
}
