// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/live"
)

// Stores have the bounds of their agents, and a receiver those of its configuration. The
// differences of their histograms are moved to the bounds of this package, so that all
// agents can be compared and added up. The buckets of totals must not be moved: the rounding
// would look like transfers.

// buckets returns the counts of a histogram, and its bounds unless they equal standard.
func buckets(standard []float64, h *live.Histogram) (own []float64, counts []uint64) {
	own, counts = h.Explicit()
	if slices.Equal(own, standard) {
		own = nil
	}
	return own, counts
}

// increase returns the difference between two states of a histogram with their own bounds, or
// standard if they are nil. The result has the bounds standard.
func increase(standard []float64, now []uint64, own []float64, before []uint64, ownBefore []float64) []uint64 {
	if own == nil && ownBefore == nil {
		return difference(now, before)
	}
	if own == nil {
		own = standard
	}
	if ownBefore == nil {
		ownBefore = standard
	}
	if len(before) > 0 && !slices.Equal(own, ownBefore) {
		before = onto(own, ownBefore, before)
	}
	return spread(standard, own, difference(now, before))
}

// difference returns a-b.
func difference(a, b []uint64) []uint64 {
	d := make([]uint64, len(a))
	for i := range a {
		d[i] = a[i]
		if i < len(b) {
			d[i] -= b[i]
		}
	}
	return d
}

// onto returns counts with the bounds to. If a bucket isn't part of another, its count moves to
// the bucket that contains its upper bound.
func onto(to, from []float64, counts []uint64) []uint64 {
	const rounding = 1 - 1e-9
	moved := make([]uint64, len(to)+1)
	for i, n := range counts {
		at := len(to)
		if i < len(from) {
			at, _ = slices.BinarySearch(to, from[i]*rounding)
		}
		moved[at] += n
	}
	return moved
}

// spread returns counts with the bounds to. It divides the count of a wide bucket as if its
// values were distributed evenly, so that a quantile is that of the wide bucket. Values beyond
// the last bound are counted just above it.
func spread(to, from []float64, counts []uint64) []uint64 {
	moved := make([]uint64, len(to)+1)
	for i, n := range counts {
		if n == 0 {
			continue
		}
		lower := 0.0
		if i > 0 {
			lower = from[i-1]
		}
		at, _ := slices.BinarySearch(to, lower*(1+1e-9))
		done := uint64(0)
		for ; i < len(from) && at < len(to) && to[at] < from[i]*(1-1e-9); at++ {
			part := uint64(float64(n) * (to[at] - lower) / (from[i] - lower))
			moved[at] += part - done
			done = part
		}
		moved[at] += n - done
	}
	return moved
}
