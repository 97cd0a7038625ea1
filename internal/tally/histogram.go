// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "math"

// Histogram is a distribution of values in the ring's unit: bytes or microseconds.
type Histogram struct {
	scale *scale

	// Values from low to high don't change min and max, and quickBucket returns
	// their bucket. If there are none, low is above high.
	low, high uint64
	buckets   [inlineBuckets]uint64 // see counts

	many []uint64     // replaces buckets if there are more than inlineBuckets
	exp  *exponential // replaces both in an exponential histogram

	sum      Sum
	min, max uint64 // before the first value, min is above max
	last     uint64
}

// inlineBuckets is enough for the catalog's bounds, so that totals with these are one object.
const inlineBuckets = 34

func (h *Histogram) init(s *scale) {
	*h = Histogram{scale: s, low: 1, min: math.MaxUint64}
	if s.kind == Exponential {
		h.exp = newExponential(s.maxSize)
	} else if s.buckets > len(h.buckets) {
		h.many = make([]uint64, s.buckets)
	}
}

// counts returns one count per explicit bucket; the last bucket has no bound.
func (h *Histogram) counts() []uint64 {
	if h.many != nil {
		return h.many
	}
	return h.buckets[:h.scale.buckets]
}

// record adds one value.
func (h *Histogram) record(v uint64) {
	h.sum.Add(v)
	h.last = v
	if v >= h.low && v <= h.high {
		h.buckets[h.scale.quickBucket(v)]++
		return
	}
	h.extend(v)
}

// extend is the slow path of record.
func (h *Histogram) extend(v uint64) {
	h.min, h.max = min(h.min, v), max(h.max, v)
	if h.exp != nil {
		h.exp.Update(h.scale.value(v))
		return
	}
	h.counts()[h.scale.bucket(v)]++
	h.setQuick()
}

func (h *Histogram) setQuick() {
	if h.scale.quick > 0 && h.exp == nil {
		h.low, h.high = h.min, min(h.max, h.scale.quick)
	}
}

// Kind returns the kind of histogram.
func (h *Histogram) Kind() HistogramKind { return h.scale.kind }

// Count returns the number of values.
func (h *Histogram) Count() uint64 {
	if h.exp != nil {
		return h.exp.Count()
	}
	var n uint64
	for _, c := range h.counts() {
		n += c
	}
	return n
}

// Total returns the sum of the values in the ring's unit.
func (h *Histogram) Total() Sum { return h.sum }

// Sum returns the sum of the values in the metric's unit.
func (h *Histogram) Sum() float64 { return h.sum.Float64() / h.scale.perUnit }

// HasRange reports whether the smallest and the largest value are known. They aren't
// known if there are no values, or if another program has counted them.
func (h *Histogram) HasRange() bool { return h.min <= h.max }

// Min returns the smallest value in the metric's unit, or 0 if it isn't known.
func (h *Histogram) Min() float64 {
	if !h.HasRange() {
		return 0
	}
	return h.scale.value(h.min)
}

// Max returns the largest value in the metric's unit, or 0 if it isn't known.
func (h *Histogram) Max() float64 { return h.scale.value(h.max) }

// Last returns the newest value in the metric's unit, or 0 if there is none.
func (h *Histogram) Last() float64 { return h.scale.value(h.last) }

// LastInt64 returns the newest value in the ring's unit, limited to the largest int64.
func (h *Histogram) LastInt64() int64 { return saturate(h.last) }

// Bounds returns the upper bounds of an explicit histogram, in the metric's unit. The
// caller must not change them.
func (h *Histogram) Bounds() []float64 { return h.scale.bounds }

// Counts returns the bucket counts of an explicit histogram, one more than its bounds.
// They are valid until the next event. The caller must not change them.
func (h *Histogram) Counts() []uint64 {
	if h.scale.kind != Explicit {
		return nil
	}
	return h.counts()
}

// Buckets returns the buckets of an exponential histogram.
func (h *Histogram) Buckets() Buckets {
	if h.exp == nil {
		return Buckets{}
	}
	return h.exp.buckets()
}
