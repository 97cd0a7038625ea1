// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Value is what another program has counted of an event type. The number of events is unknown,
// except for durations.
type Value struct {
	Sum, Last uint64
	Counts    []uint64 // of durations: the counts of their buckets
}

// ImportShape returns the shape of totals that another program has counted, with
// histograms of times or without. The bounds are in microseconds. It returns an error if
// they aren't finite, positive and increasing.
func ImportShape(bounds []float64, histograms bool) (*Shape, error) {
	duration := HistogramConfig{Kind: NoHistogram}
	if histograms && len(bounds) > 0 {
		duration.Kind = Explicit
	}
	for _, bound := range bounds {
		duration.Bounds = append(duration.Bounds, bound/microsPerSecond)
	}
	none := HistogramConfig{Kind: NoHistogram}
	return NewShape(Config{Duration: duration, Size: none, Throughput: none})
}

// Import converts what a process has counted, by event type, to totals. The shape must be an
// [ImportShape] of the bounds of the durations. The memory of a process that has exited is released.
func (s *Shape) Import(values []Value, exited bool) *Totals {
	t := &Totals{series: make([]Series, reserved)}
	t.histograms.init(s)
	for i, v := range values {
		kind := ringbuf.Type(i)
		sum, occurred := Sum{Lo: v.Sum}, v.Sum != 0 || v.Last != 0
		switch {
		case i < ringbuf.Types && t.of(kind) != nil:
			h := t.of(kind)
			h.sum, h.last = sum, v.Last
			if v.Counts == nil && occurred {
				h.counts()[0] = 1
			}
			for j, n := range v.Counts { // without bounds, there is one bucket
				h.counts()[min(j, len(h.counts())-1)] += n
			}
		case !occurred:
		case i < ringbuf.Types:
			t.counters[i] = Total{Events: 1, Sum: sum, Newest: v.Last}
		default:
			t.series = append(t.series, Series{noCategory, ringbuf.V4.TypeName(kind), true, Total{Sum: sum, Newest: v.Last}})
		}
	}
	if exited {
		t.memory.RegisteredBefore, t.memory.DeregisteredBefore = t.Registered().Sum, t.Deregistered().Sum
	}
	t.memory.Known = t.balance() >= 0
	return t
}
