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

// Group adds up the packets of one device, worker, layer or operation.
type Group struct {
	Name    string `json:"name"`    // for a layer, its index
	Packets int64  `json:"packets"` // successful packets
	Failed  int64  `json:"failed"`

	// These only include successful packets.
	CPU  int64         `json:"cpu"`  // packets of this device
	IGPU int64         `json:"igpu"` // likewise
	Time time.Duration `json:"time_ns"`
	Min  time.Duration `json:"min_ns"` // of a packet
	Max  time.Duration `json:"max_ns"`
}

func (g *Group) add(r *Row) {
	if !r.Success {
		g.Failed++
		return
	}
	if g.Packets == 0 || r.Duration < g.Min {
		g.Min = r.Duration
	}
	g.Packets++
	g.Max = max(g.Max, r.Duration)
	g.Time += r.Duration
	switch r.Device {
	case CPU:
		g.CPU++
	case IGPU:
		g.IGPU++
	}
}

// groups holds the groups of one kind.
type groups[K comparable] map[K]*Group

// add adds a row to the group with a key or, beyond the limit, to that of other.
func (gs groups[K]) add(key, other K, r *Row) {
	g := gs[key]
	if g == nil && len(gs) >= groupLimit {
		key, g = other, gs[other]
	}
	if g == nil {
		g = new(Group)
		gs[key] = g
	}
	g.add(r)
}

// of returns the group with a key, or an empty one.
func (gs groups[K]) of(key K) Group {
	if g := gs[key]; g != nil {
		return *g
	}
	return Group{}
}

// totals adds up packets: those that a session records, or those of the rows in its CSV. It
// is not safe for concurrent use.
type totals struct {
	all                          Group
	devices, workers, operations groups[string]
	layers                       groups[int]
	experts                      groups[selection]

	promptTokens, generatedTokens, contention int64
}

// selection identifies the packets of one expert's operation at one layer.
type selection struct {
	operation string
	layer     int
}

func (s selection) name() string {
	if s.operation == overflowName {
		return overflowName
	}
	return atLayer(s.operation, s.layer)
}

// atLayer names a stage or an operation at a layer.
func atLayer(name string, layer int) string { return name + "_layer_" + strconv.Itoa(layer) }

func newTotals() *totals {
	return &totals{
		devices: make(groups[string]), workers: make(groups[string]), operations: make(groups[string]),
		layers: make(groups[int]), experts: make(groups[selection]),
	}
}

// add counts one packet.
func (t *totals) add(r *Row) {
	t.all.add(r)
	t.devices.add(r.Device, overflowName, r)
	t.workers.add(r.Worker, overflowName, r)
	t.operations.add(r.Operation, overflowName, r)
	t.layers.add(r.Layer, -1, r)
	if isExpert(r.Operation) {
		t.experts.add(selection{r.Operation, r.Layer}, selection{operation: overflowName}, r)
	}
}
