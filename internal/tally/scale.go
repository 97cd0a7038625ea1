// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// scale is what the histograms of one metric have in common.
type scale struct {
	kind    HistogramKind
	perUnit float64   // how many of the ring's units make one of the metric's
	bounds  []float64 // explicit only, as limits
	limits  []uint64  // the largest value of the ring that is within each bound
	maxSize int
	hash    uint64 // of the above, to tell whether totals are of the same shape

	cells [65]uint64 // by the bits of a value, see quickBucket
	quick uint64     // the largest value that quickBucket is right for
}

const (
	// maxBounds is far above what backends make use of.
	maxBounds = 255
	// maxMaxSize bounds what every agent's exponential histograms take up.
	maxMaxSize = 4096
)

func newScale(c HistogramConfig, perUnit float64, bounds []float64) (*scale, error) {
	s := &scale{kind: c.Kind, perUnit: perUnit, maxSize: c.MaxSize}
	if s.kind == "" {
		s.kind = Explicit
	}
	if len(c.Bounds) > 0 {
		bounds = slices.Clone(c.Bounds)
	}
	if s.maxSize == 0 {
		s.maxSize = DefaultMaxSize
	}
	switch {
	case s.kind != Explicit && s.kind != Exponential && s.kind != NoHistogram:
		return nil, fmt.Errorf("kind is %q: it is one of explicit, exponential, none", s.kind)
	case len(bounds) > maxBounds:
		return nil, fmt.Errorf("bounds are %d: %d at most", len(bounds), maxBounds)
	case s.maxSize < 2 || s.maxSize > maxMaxSize:
		return nil, fmt.Errorf("max_size is %d: it must be from 2 to %d", s.maxSize, maxMaxSize)
	}
	for i, b := range bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || b < 0 || i > 0 && b <= bounds[i-1] {
			return nil, fmt.Errorf("bounds must be finite, not negative, and increasing: bound %d is %v", i+1, b)
		}
	}
	if s.kind == Explicit {
		s.setBounds(bounds)
	}
	s.setCells()
	s.setHash()
	return s, nil
}

// setHash leaves out what the kind makes no use of: to change that is not to
// change the histogram.
func (s *scale) setHash() {
	hash := fnv.New64a()
	fmt.Fprint(hash, s.kind, s.perUnit)
	switch s.kind {
	case Explicit:
		fmt.Fprint(hash, s.bounds)
	case Exponential:
		fmt.Fprint(hash, s.maxSize)
	}
	s.hash = hash.Sum64()
}

func (s *scale) setBounds(bounds []float64) {
	s.bounds = bounds
	for _, b := range bounds {
		s.limits = append(s.limits, s.limit(b))
	}
}

// limit is the largest integer that is within a bound once it is written in
// the metric's unit. It is searched for, as the product of the two may be one
// off: 0.0025 s and its like have no exact binary form.
func (s *scale) limit(bound float64) uint64 {
	low, high := uint64(0), uint64(math.MaxUint64)
	for low < high {
		middle := high - (high-low)/2
		if s.value(middle) <= bound {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// value is v in the metric's unit.
func (s *scale) value(v uint64) float64 { return float64(v) / s.perUnit }

// explicit is the number of explicit buckets.
func (s *scale) explicit() int {
	if s.kind == Exponential {
		return 0
	}
	return len(s.limits) + 1
}

// bucket is the number of the bucket that v belongs to: the first whose bound
// it doesn't exceed.
func (s *scale) bucket(v uint64) int {
	return sort.Search(len(s.limits), func(i int) bool { return v <= s.limits[i] })
}

const (
	quickBits    = 48     // of a value that quickBucket takes, at most
	quickBuckets = 1 << 5 // that it tells apart
	quickShift   = 64 - 5 // where their number stands
)

// quickBucket is bucket without a search, for values up to s.quick.
//
// Where at most one limit lies between two powers of two, as in the catalog,
// a value of n bits is in one of two buckets, i or i+1. cells[n] is
// (i+1)<<quickShift - (limit+1): adding a value beyond the limit makes i+1 of
// the upper bits, adding any other leaves i.
func (s *scale) quickBucket(v uint64) uint64 {
	return (v + s.cells[bits.Len64(v)]) >> quickShift
}

// setCells makes the table for quickBucket, up to the power of two where that
// stops being right.
func (s *scale) setCells() {
	if len(s.limits) >= quickBuckets {
		return
	}
	for n := 1; n <= quickBits; n++ {
		lowest, highest := uint64(1)<<(n-1), uint64(1)<<n-1
		switch first, last := s.bucket(lowest), s.bucket(highest); last {
		case first:
			s.cells[n] = uint64(first) << quickShift
		case first + 1:
			s.cells[n] = uint64(last)<<quickShift - (s.limits[first] + 1)
		default:
			return
		}
		s.quick = highest
	}
}
