// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"
	"time"
)

// groupLimit limits the groups of one kind, because a session uses constant memory.
const groupLimit = 4096

// overflowName is the name of the group that combines all groups beyond the limit.
const overflowName = "_OTHER"

// group adds up the packets of one device, worker, layer or operation.
type group struct {
	packets, failed int64 // successful and failed ones

	// These only include successful packets.
	cpu, igpu               int64
	time, shortest, longest time.Duration
}

func (g *group) add(r *Row) {
	if !r.Success {
		g.failed++
		return
	}
	if g.packets == 0 || r.Duration < g.shortest {
		g.shortest = r.Duration
	}
	g.packets++
	g.longest = max(g.longest, r.Duration)
	g.time += r.Duration
	switch r.Device {
	case CPU:
		g.cpu++
	case IGPU:
		g.igpu++
	}
}

// named returns the totals under a name.
func (g *group) named(name string) Group {
	out := Group{
		Name:        name,
		Count:       g.packets + g.failed,
		TotalTimeMS: milliseconds(g.time),
		AvgTimeMS:   ratio(milliseconds(g.time), float64(g.packets)),
		MaxTimeMS:   milliseconds(g.longest),
		CPUCount:    g.cpu,
		IGPUCount:   g.igpu,
		FailedCount: g.failed,
	}
	if g.packets > 0 {
		out.MinTimeMS = new(milliseconds(g.shortest))
	}
	return out
}

// groups holds the groups of one kind.
type groups[K comparable] map[K]*group

// add adds a row to the group with a key or, beyond the limit, to that of other.
func (gs groups[K]) add(key, other K, r *Row) {
	g := gs[key]
	if g == nil && len(gs) >= groupLimit {
		key, g = other, gs[other]
	}
	if g == nil {
		g = new(group)
		gs[key] = g
	}
	g.add(r)
}

// totals adds up packets: those that a session records, or those of the rows in its CSV. It
// is not safe for concurrent use.
type totals struct {
	all                          group
	devices, workers, operations groups[string]
	layers                       groups[int]
	experts                      groups[string] // by selection
}

// atLayer names a stage or an operation at a layer.
func atLayer(name string, layer int) string { return name + "_layer_" + strconv.Itoa(layer) }

func newTotals() *totals {
	return &totals{
		devices: make(groups[string]), workers: make(groups[string]), operations: make(groups[string]),
		layers: make(groups[int]), experts: make(groups[string]),
	}
}

// add counts one packet, with the name of its selection.
func (t *totals) add(r *Row, selection string) {
	t.all.add(r)
	t.devices.add(r.Device, overflowName, r)
	t.workers.add(r.Worker, overflowName, r)
	t.operations.add(r.Operation, overflowName, r)
	t.layers.add(r.Layer, -1, r)
	if selection != "" {
		t.experts.add(selection, overflowName, r)
	}
}
