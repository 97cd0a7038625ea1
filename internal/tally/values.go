// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Values are totals that another program has counted, by event type. They don't include
// the number of events, except for transfers.
type Values struct {
	// Sums are sums of values. The sums of transfer times and post times are in the
	// distributions instead.
	Sums [ringbuf.Types]Sum
	// Last are the newest values.
	Last [ringbuf.Types]uint64
	// Duration and Post are the distributions of transfer times and post times,
	// in microseconds.
	Duration, Post Distribution
	// Others are the values of types that aren't in the catalog, beginning with type
	// [ringbuf.Types].
	Others []Other
}

// Other is the sum and the newest value of an event type.
type Other struct {
	Sum  Sum
	Last uint64
}

// Distribution is a histogram that another program has counted.
type Distribution struct {
	Counts []uint64 // per bucket, one more than bounds
	Sum    Sum
}

// DistributionTypes is the number of types up to the last one that has a distribution.
const DistributionTypes = int(ringbuf.TypeXferPostTime) + 1

// Distribution returns the distribution of a type, or nil if the type has only a sum.
func (v *Values) Distribution(t int) *Distribution {
	switch ringbuf.Type(t) {
	case ringbuf.TypeXferTime:
		return &v.Duration
	case ringbuf.TypeXferPostTime:
		return &v.Post
	default:
		return nil
	}
}

// occurred reports whether there was an event of a type.
func (v *Values) occurred(t int) bool {
	sum := v.Sums[t]
	if d := v.Distribution(t); d != nil {
		sum = d.Sum
	}
	return sum != Sum{} || v.Last[t] != 0
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

// HasDurations reports whether totals of this shape have histograms of times.
func (s *Shape) HasDurations() bool { return s.duration.kind != NoHistogram }

// Import converts the values that a process has counted to totals. The shape must be an
// [ImportShape] of their bounds. The memory of a process that has exited is released.
func (s *Shape) Import(v *Values, exited bool) *Totals {
	t := &Totals{series: make([]Series, reserved)}
	t.shape = s
	for kind := range t.counters {
		if v.occurred(kind) {
			// The number of events is unknown.
			t.counters[kind] = Total{Events: 1, Sum: v.Sums[kind], last: v.Last[kind]}
		}
	}
	for _, one := range t.list() {
		one.init(one.scale)
		if one.of != computed {
			one.load(v, one.of)
		}
	}
	if exited {
		t.memory.registeredBefore, t.memory.deregisteredBefore = t.Registered().Sum, t.Deregistered().Sum
	}
	t.memory.known = t.balance() >= 0
	for i, o := range v.Others {
		if o != (Other{}) { // the number of events is unknown, so the values are reported
			t.series = append(t.series, Series{
				Category: CategoryName(noCategory), Name: ringbuf.V4.TypeName(ringbuf.Type(ringbuf.Types + i)),
				Valued: true, number: noCategory, Sum: o.Sum, last: o.Last,
			})
		}
	}
	return t
}

// load sets an empty histogram to the values of a type. Without bounds, or if the type
// has only a sum, it has a single bucket.
func (h *Histogram) load(v *Values, t ringbuf.Type) {
	h.last = v.Last[t]
	d := v.Distribution(int(t))
	if d == nil {
		if h.sum = v.Sums[t]; v.occurred(int(t)) {
			h.counts()[0] = 1 // the number of events is unknown
		}
		return
	}
	h.sum = d.Sum
	counts := h.counts()
	for i, n := range d.Counts {
		counts[min(i, len(counts)-1)] += n
	}
}
