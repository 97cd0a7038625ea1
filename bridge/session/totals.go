// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
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

// totals holds the counts for the summary. Its size doesn't depend on the number of
// packets. It is not safe for concurrent use.
type totals struct {
	packets, failed   int64
	cpu, igpu         int64 // successful packets
	cpuTime, igpuTime time.Duration

	promptTokens, generatedTokens int64
	contention                    int64

	operations limited[operation]
	selections limited[selection]
}

// operation holds the totals of one operation. Times only include successful
// packets.
type operation struct {
	name              string
	count, failed     int64
	cpu, igpu         int64
	total             time.Duration
	shortest, longest time.Duration
}

// selection counts the packets of one expert's operation at one layer.
type selection struct {
	name  string
	count int64
}

// operation returns the entry of an operation and creates it if necessary. For
// operations beyond the limit, it returns a common entry.
func (t *totals) operation(name string) *operation {
	return t.operations.at(name, operationLimit, func(name string) *operation { return &operation{name: name} })
}

// selection returns the entry of an expert's operation at a layer and creates it if
// necessary. Beyond the limit, it returns a common entry. It returns nil for other
// operations.
func (t *totals) selection(op *operation, name string, layer int) *selection {
	if !isExpert(name) {
		return nil
	}
	limit := selectionLimit
	if op.name != name {
		limit = 0 // the operation itself is beyond its limit
	}
	return t.selections.at(atLayer(name, layer), limit, func(name string) *selection { return &selection{name: name} })
}

// add counts one packet. Times and counts per device only include successful
// packets; expert selections include failed ones.
func (t *totals) add(op *operation, sel *selection, device string, took time.Duration, success bool) {
	t.packets++
	op.count++
	if sel != nil {
		sel.count++
	}
	if !success {
		t.failed++
		op.failed++
		return
	}
	op.addTime(took)
	switch device {
	case CPU:
		t.cpu++
		t.cpuTime += took
		op.cpu++
	case IGPU:
		t.igpu++
		t.igpuTime += took
		op.igpu++
	}
}

func (o *operation) addTime(took time.Duration) {
	if o.count-o.failed == 1 || took < o.shortest {
		o.shortest = took
	}
	o.longest = max(o.longest, took)
	o.total += took
}

// limited is a map by name that keeps the order of its keys. Names beyond a limit share
// one additional value.
type limited[V any] struct {
	index    map[string]*V
	order    []*V
	overflow *V
}

// at returns the value of a name. If there is none, it creates one while there are
// fewer than limit. Beyond the limit, it returns the shared value.
func (t *limited[V]) at(name string, limit int, create func(name string) *V) *V {
	if v, ok := t.index[name]; ok {
		return v
	}
	if len(t.order) < limit {
		v := create(name)
		if t.index == nil {
			t.index = make(map[string]*V)
		}
		t.index[name] = v
		t.order = append(t.order, v)
		return v
	}
	if t.overflow == nil {
		t.overflow = create(overflowName)
	}
	return t.overflow
}

// all returns the values in the order of their keys, followed by the shared value, if
// there is one.
func (t *limited[V]) all() []*V {
	if t.overflow == nil {
		return t.order
	}
	return append(slices.Clip(t.order), t.overflow)
}
