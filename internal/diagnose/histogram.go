// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"math"
	"slices"
	"sort"
)

// Histogram has a count per bucket. Bounds are upper bounds. The last bucket has no bound.
type Histogram struct {
	Bounds []float64 `json:"bounds,omitempty"`
	Counts []uint64  `json:"counts,omitempty"`
}

// Since returns the increases of the counts. If the bounds have changed, all counts are new.
func (h Histogram) Since(before Histogram) Histogram {
	d := Histogram{Bounds: h.Bounds, Counts: slices.Clone(h.Counts)}
	if !slices.Equal(before.Bounds, h.Bounds) || len(before.Counts) != len(h.Counts) {
		return d
	}
	for i, n := range before.Counts {
		d.Counts[i] = increase(n, h.Counts[i])
	}
	return d
}

// Add adds counts, which may have other bounds: then a count moves to the bucket that contains its upper bound.
func (h Histogram) Add(other Histogram) {
	const rounding = 1 - 1e-9
	same := slices.Equal(h.Bounds, other.Bounds)
	for i, n := range other.Counts {
		at := i
		if !same {
			at = len(h.Bounds)
			if i < len(other.Bounds) {
				at = sort.SearchFloat64s(h.Bounds, other.Bounds[i]*rounding)
			}
		}
		h.Counts[at] += n
	}
}

// Quantile returns a quantile from 0 to 1, interpolated within a bucket as in PromQL, or NaN. A quantile above the
// last bound is the last bound.
func (h Histogram) Quantile(q float64) float64 {
	var sum float64
	for _, n := range h.Counts {
		sum += float64(n)
	}
	if sum == 0 || len(h.Bounds) == 0 {
		return math.NaN()
	}
	rank, below := q*sum, 0.0
	for i, bound := range h.Bounds {
		n := float64(h.Counts[i])
		if n > 0 && below+n >= rank {
			lower := 0.0
			if i > 0 {
				lower = h.Bounds[i-1]
			}
			return lower + (bound-lower)*max(0, rank-below)/n
		}
		below += n
	}
	return h.Bounds[len(h.Bounds)-1]
}
