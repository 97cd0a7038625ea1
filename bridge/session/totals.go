// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"
	"time"
)

// Limits on the size of a summary.
const (
	operationLimit = 200
	selectionLimit = 4096
)

// overflowName is the name of the operation and the expert selection that combine
// everything beyond a limit.
const overflowName = "_OTHER"

// totals adds up packets for a summary: those that a session records, or those of the
// rows in its CSV. Its size doesn't depend on the number of packets. It is not safe for
// concurrent use.
type totals struct {
	all        group
	operations map[string]*group
	selections map[selection]int64

	promptTokens, generatedTokens int64
	contention                    int64
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

// group adds up packets. Only the first two numbers include failed packets.
type group struct {
	packets, failed   int64
	cpu, igpu         int64
	time              time.Duration
	cpuTime, igpuTime time.Duration
	shortest, longest time.Duration
}

func newTotals() *totals {
	return &totals{operations: make(map[string]*group), selections: make(map[selection]int64)}
}

// add counts one packet.
func (t *totals) add(r *Row) {
	t.all.add(r)
	op := r.Operation
	if t.operations[op] == nil {
		if len(t.operations) >= operationLimit {
			op = overflowName
		}
		if t.operations[op] == nil {
			t.operations[op] = new(group)
		}
	}
	t.operations[op].add(r)
	if !isExpert(r.Operation) {
		return
	}
	key := selection{r.Operation, r.Layer}
	if _, known := t.selections[key]; !known && len(t.selections) >= selectionLimit {
		key = selection{operation: overflowName}
	}
	t.selections[key]++
}

func (g *group) add(r *Row) {
	g.packets++
	if !r.Success {
		g.failed++
		return
	}
	if g.packets-g.failed == 1 || r.Duration < g.shortest {
		g.shortest = r.Duration
	}
	g.longest = max(g.longest, r.Duration)
	g.time += r.Duration
	switch r.Device {
	case CPU:
		g.cpu++
		g.cpuTime += r.Duration
	case IGPU:
		g.igpu++
		g.igpuTime += r.Duration
	}
}
