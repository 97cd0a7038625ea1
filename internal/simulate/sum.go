// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math/bits"
	"slices"
)

// Sum returns the sum of the totals of several agents.
func Sum(all ...Totals) Totals {
	var s Totals
	s.Written.Errors = map[string]uint64{}
	for i := range all {
		t := &all[i]
		if i == 0 {
			s.Layout, s.Capacity = t.Layout, t.Capacity
		}
		if s.Layout != t.Layout {
			s.Layout = "mixed"
		}
		if s.Capacity != t.Capacity {
			s.Capacity = 0
		}
		s.Starts += t.Starts
		s.Flushes += t.Flushes
		s.Operations += t.Operations
		s.Failed += t.Failed
		s.Pending += t.Pending
		s.Written.add(&t.Written)
		s.DroppedStaging.add(&t.DroppedStaging)
		s.DroppedRing.add(&t.DroppedRing)
		s.Discarded.add(&t.Discarded)
		s.Unread.add(&t.Unread)
	}
	return s
}

func (e *Events) add(o *Events) {
	e.Events += o.Events
	both := slices.Concat(e.ByName, o.ByName)
	sortNames(both)
	merged := both[:0]
	for _, n := range both {
		if last := len(merged) - 1; last >= 0 && merged[last].Category == n.Category && merged[last].Name == n.Name {
			merged[last].merge(n)
		} else {
			merged = append(merged, n)
		}
	}
	e.ByName = merged
}

func (n *Named) merge(o Named) {
	var carry uint64
	n.Sum, carry = bits.Add64(n.Sum, o.Sum, 0)
	n.Overflows += o.Overflows + carry
	n.Count += o.Count
	n.Last = max(n.Last, o.Last)
}

func (w *Written) add(o *Written) {
	w.Events.add(&o.Events)
	all := w.list()
	for i, one := range o.list() {
		all[i].add(one.Distribution)
	}
	w.Transmit.add(&o.Transmit)
	w.Receive.add(&o.Receive)
	w.MemoryRegistered += o.MemoryRegistered
	w.MemoryDeregistered += o.MemoryDeregistered
	w.ReportedDropped += o.ReportedDropped
	for name, n := range o.Errors {
		w.Errors[name] += n
	}
}

func (d *Direction) add(o *Direction) {
	d.Bytes += o.Bytes
	d.Requests += o.Requests
}
