// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "math"

// quantile estimates the quantile q of the values, in the metric's unit. It interpolates
// within a bucket, so the error is at most the bucket's width. known is false for fewer
// than atLeast values, or without buckets.
func (h *Histogram) quantile(q float64, atLeast uint64) (v float64, known bool) {
	n := h.Count()
	if n < atLeast || h.scale.kind == NoHistogram {
		return 0, false
	}
	rank := q * float64(n)
	if h.exp != nil {
		return h.exp.quantile(rank, h.Min(), h.Max()), true
	}
	below := 0.0
	for i, c := range h.counts() {
		if below+float64(c) < rank {
			below += float64(c)
			continue
		}
		lower, upper := h.Min(), h.Max()
		if i > 0 {
			lower = max(lower, h.scale.bounds[i-1])
		}
		if i < len(h.scale.bounds) {
			upper = min(upper, h.scale.bounds[i])
		}
		return lower + (upper-lower)*(rank-below)/float64(c), true
	}
	return h.Max(), true
}

// quantile returns the upper bound of the bucket that contains the value of a rank, or
// the largest value if that is less.
func (e *exponential) quantile(rank, least, most float64) float64 {
	below := float64(e.zero)
	if rank <= below {
		return least
	}
	for i, c := range e.counts {
		if below += float64(c); below >= rank {
			bound := math.Exp2(math.Ldexp(float64(int(e.offset)+i+1), -int(e.scale)))
			return min(bound, most)
		}
	}
	return most
}
