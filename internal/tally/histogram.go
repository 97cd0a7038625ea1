package tally

import "math/bits"

// Histogram is a distribution of values of the ring: bytes, or microseconds.
type Histogram struct {
	scale  *scale
	counts []uint64     // explicit: one per bucket, the last one without a bound
	exp    *exponential // exponential

	count    uint64
	sum      Sum
	min, max uint64
	last     uint64
}

func newHistogram(s *scale) Histogram {
	h := Histogram{scale: s}
	switch s.kind {
	case Explicit:
		h.counts = make([]uint64, len(s.limits)+1)
	case Exponential:
		h.exp = newExponential(s.maxSize)
	case NoHistogram:
	}
	return h
}

// record adds one value.
func (h *Histogram) record(v uint64) {
	if h.count == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.count++
	h.sum.Add(v)
	h.last = v
	switch {
	case h.counts != nil:
		h.counts[h.scale.bucket(v)]++
	case h.exp != nil:
		h.exp.record(h.scale.value(v))
	}
}

// bucket is the number of the bucket that v belongs to: the first whose bound
// it doesn't exceed.
func (s *scale) bucket(v uint64) int {
	i := int(s.start[bits.Len64(v)])
	for i < len(s.limits) && v > s.limits[i] {
		i++
	}
	return i
}

// Kind is how the distribution is kept.
func (h *Histogram) Kind() HistogramKind { return h.scale.kind }

// Count is the number of values.
func (h *Histogram) Count() uint64 { return h.count }

// Total is the sum of the values in the ring's unit.
func (h *Histogram) Total() Sum { return h.sum }

// Sum is the sum of the values in the metric's unit.
func (h *Histogram) Sum() float64 { return h.sum.Float64() / h.scale.perUnit }

// Min is the smallest value in the metric's unit, 0 if there is none.
func (h *Histogram) Min() float64 { return h.scale.value(h.min) }

// Max is the largest value in the metric's unit, 0 if there is none.
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
func (h *Histogram) Counts() []uint64 { return h.counts }

// Buckets are the buckets of an exponential histogram.
func (h *Histogram) Buckets() Buckets {
	if h.exp == nil {
		return Buckets{}
	}
	return h.exp.buckets()
}
