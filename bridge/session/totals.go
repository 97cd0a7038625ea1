package session

import (
	"slices"
	"strconv"
	"time"
)

// selectionLimit is how many pairs of an expert's operation and a layer the
// summary tells apart.
const selectionLimit = 4096

// overflowName is the operation, and the expert selection, that stands for all
// those past a limit. It is also what error.type says where it can't say more.
const overflowName = "_OTHER"

// totals is what a session amounts to so far: everything that the summary
// needs, in memory that doesn't grow with the number of packets. It is not
// safe for concurrent use.
type totals struct {
	packets, failed   int64
	cpu, igpu         int64 // successes
	cpuTime, igpuTime time.Duration

	promptTokens, generatedTokens int64
	contention                    int64

	operationLimit int
	operations     table[string, operation]
	selections     table[selectionKey, selection]
}

// operation is what one operation amounts to. Times are of successes.
type operation struct {
	name              string
	count, failed     int64
	cpu, igpu         int64
	total             time.Duration
	shortest, longest time.Duration
}

type selectionKey struct {
	operation string
	layer     int
}

// selection is how often an expert was selected.
type selection struct {
	name  string
	count int64
}

func newTotals(operationLimit int) *totals {
	return &totals{operationLimit: operationLimit}
}

// operation finds or makes the entry of an operation, or the one for all
// those past the limit; known tells which.
func (t *totals) operation(name string) (op *operation, known bool) {
	return t.operations.at(name, t.operationLimit, func() operation {
		return operation{name: name}
	}, operation{name: overflowName})
}

// selection finds or makes the entry of an expert's operation at a layer, or
// the one for all those past the limit. Operations that have nothing to do
// with experts have none.
func (t *totals) selection(op *operation, name string, layer int) *selection {
	if !isExpert(name) {
		return nil
	}
	limit := selectionLimit
	if op.name != name {
		limit = 0 // the operation is past its own limit already
	}
	s, _ := t.selections.at(selectionKey{name, layer}, limit, func() selection {
		return selection{name: name + "_layer_" + strconv.Itoa(layer)}
	}, selection{name: overflowName})
	return s
}

// add counts one packet. Times and shares of devices are those of successes;
// an expert was selected also where its packet failed.
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

// table is a map that remembers the order in which its keys came and that has
// one value more, for all keys past a limit on their number.
type table[K comparable, V any] struct {
	index    map[K]*V
	order    []*V
	overflow *V
}

// at finds the value of a key, or makes it while there are fewer than limit of
// them, or returns the value for the rest; known is false for that one.
func (t *table[K, V]) at(key K, limit int, create func() V, rest V) (v *V, known bool) {
	if v, ok := t.index[key]; ok {
		return v, true
	}
	if len(t.order) < limit {
		value := create()
		if t.index == nil {
			t.index = make(map[K]*V)
		}
		t.index[key] = &value
		t.order = append(t.order, &value)
		return &value, true
	}
	if t.overflow == nil {
		t.overflow = &rest
	}
	return t.overflow, false
}

// all are the values in the order of their keys' coming, then the one for the
// rest if there was any.
func (t *table[K, V]) all() []*V {
	if t.overflow == nil {
		return t.order
	}
	return append(slices.Clip(t.order), t.overflow)
}
