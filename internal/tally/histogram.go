// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "math"

// Histogram is a distribution of values of the ring: bytes, or microseconds.
type Histogram struct {
	scale *scale

	// Values from low to high change neither min nor max, and quickBucket finds
	// the bucket of each. There may be none: low is above high then.
	low, high uint64
	buckets   [quickBuckets]uint64 // see counts

	many []uint64     // instead of buckets, if there are more of them
	exp  *exponential // instead of both, if the scale says so

	sum      Sum
	min, max uint64 // min is above max before the first value
	last     uint64
}

func (h *Histogram) init(s *scale) {
	*h = Histogram{scale: s, low: 1, min: math.MaxUint64}
	if s.kind == Exponential {
		h.exp = newExponential(s.maxSize)
	} else if n := s.explicit(); n > len(h.buckets) {
		h.many = make([]uint64, n)
	}
}

// counts has one element per explicit bucket; the last one has no bound.
func (h *Histogram) counts() []uint64 {
	if h.many != nil {
		return h.many
	}
	return h.buckets[:h.scale.explicit()]
}

// copyFrom makes h a copy of from that shares no memory with it.
func (h *Histogram) copyFrom(from *Histogram) {
	many, exp := h.many, h.exp
	*h = *from
	if from.many != nil {
		h.many = append(many[:0], from.many...)
	}
	if from.exp != nil {
		h.exp = exp.copyOf(from.exp)
	}
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

// extend adds a value that record has no quick way for.
func (h *Histogram) extend(v uint64) {
	h.min, h.max = min(h.min, v), max(h.max, v)
	if h.exp != nil {
		h.exp.record(h.scale.value(v))
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

// Kind is how the distribution is kept.
func (h *Histogram) Kind() HistogramKind { return h.scale.kind }

// Count is the number of values.
func (h *Histogram) Count() uint64 {
	if h.exp != nil {
		return h.exp.count()
	}
	var n uint64
	for _, c := range h.counts() {
		n += c
	}
	return n
}

// Total is the sum of the values in the ring's unit.
func (h *Histogram) Total() Sum { return h.sum }

// Sum is the sum of the values in the metric's unit.
func (h *Histogram) Sum() float64 { return h.sum.Float64() / h.scale.perUnit }

// HasRange reports whether the smallest and the largest value are known. They
// aren't if there is no value, or if another program has counted them.
func (h *Histogram) HasRange() bool { return h.min <= h.max }

// Min is the smallest value in the metric's unit, 0 if it isn't known.
func (h *Histogram) Min() float64 {
	if !h.HasRange() {
		return 0
	}
	return h.scale.value(h.min)
}

// Max is the largest value in the metric's unit, 0 if it isn't known.
func (h *Histogram) Max() float64 { return h.scale.value(h.max) }

// Last is the newest value in the metric's unit, 0 if there is none.
func (h *Histogram) Last() float64 { return h.scale.value(h.last) }

// LastInt64 is the newest value in the ring's unit, or the largest int64.
func (h *Histogram) LastInt64() int64 { return saturate(h.last) }

// Bounds are the upper bounds of an explicit histogram, in the metric's unit.
// They are not to be changed.
func (h *Histogram) Bounds() []float64 { return h.scale.bounds }

// Counts are the counts of an explicit histogram, one more than its bounds.
// They are not to be changed, and valid until the next event.
func (h *Histogram) Counts() []uint64 {
	if h.scale.kind != Explicit {
		return nil
	}
	return h.counts()
}

// Buckets are the buckets of an exponential histogram.
func (h *Histogram) Buckets() Buckets {
	if h.exp == nil {
		return Buckets{}
	}
	return h.exp.buckets()
}
