// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// scale is the configuration that all histograms of one metric share.
type scale struct {
	kind    HistogramKind
	perUnit float64   // the ring's units per metric unit
	bounds  []float64 // explicit histograms only
	limits  []uint64  // the largest integer in the ring's unit within each bound
	buckets int       // number of explicit buckets; 0 in an exponential histogram
	maxSize int
	hash    uint64 // hash of the configuration

	cells [65]uint64 // by the bit length of a value, see quickBucket
	quick uint64     // the largest value that quickBucket supports

	fine []uint64 // by fineCell, see fineBucket; nil if it isn't supported
}

// maxBounds is far above what backends support.
const maxBounds = 255

func newScale(c HistogramConfig, perUnit float64, bounds []float64) (*scale, error) {
	s := &scale{kind: cmp.Or(c.Kind, Explicit), perUnit: perUnit, maxSize: cmp.Or(c.MaxSize, defaultMaxSize)}
	if len(c.Bounds) > 0 {
		bounds = slices.Clone(c.Bounds)
	}
	switch {
	case s.kind != Explicit && s.kind != Exponential && s.kind != NoHistogram:
		return nil, fmt.Errorf("kind is %q: use explicit, exponential or none", s.kind)
	case len(bounds) > maxBounds:
		return nil, fmt.Errorf("bounds has %d values: use at most %d", len(bounds), maxBounds)
	}
	for i, b := range bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || b < 0 || i > 0 && b <= bounds[i-1] {
			return nil, fmt.Errorf("bounds must be finite, not negative, and increasing: bound %d is %v", i+1, b)
		}
	}
	if s.kind == Explicit {
		s.setBounds(bounds)
	}
	if s.kind != Exponential {
		s.buckets = len(s.limits) + 1
	}
	s.setCells()
	s.setFine()
	s.setHash()
	return s, nil
}

// setHash omits settings that the kind doesn't use, because changing them doesn't
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

// limit returns the largest integer whose value in the metric's unit is within a bound.
// It searches, because the product of bound and perUnit may be off by one: bounds such
// as 0.0025 s have no exact binary form.
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

// value converts v to the metric's unit.
func (s *scale) value(v uint64) float64 { return float64(v) / s.perUnit }

// bucket returns the index of v's bucket: the first bucket whose bound v doesn't
// exceed.
func (s *scale) bucket(v uint64) int {
	if cell := fineCell(float64(v)); cell < uint64(len(s.fine)) {
		return int(fineBucket(s.fine, cell, v))
	}
	return s.search(v)
}

// search is bucket without a table.
func (s *scale) search(v uint64) int {
	return sort.Search(len(s.limits), func(i int) bool { return v <= s.limits[i] })
}

const (
	quickBits    = 48     // maximum bit length of values
	quickBuckets = 1 << 5 // maximum number of buckets
	quickShift   = 64 - 5 // position of the bucket's index in the sum
)

// quickBucket is bucket without a search, for values up to s.quick.
//
// If at most one limit lies between two powers of two, as in the catalog, a value of n
// bits is in one of two buckets, i or i+1. cells[n] is (i+1)<<quickShift - (limit+1):
// adding a value above the limit sets the upper bits to i+1, and adding any other value
// sets them to i.
func (s *scale) quickBucket(v uint64) uint64 {
	return (v + s.cells[bits.Len64(v)]) >> quickShift
}

// setCells fills the table for quickBucket, up to the first power of two that has more
// than one limit before the next.
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

// A float64 is 2^exponent * (1 + fraction/2^52).
const (
	fractionBits = 52
	exponentBias = 1023
)

const (
	fineBits  = 4      // bits of a number below its highest one that select a cell
	fineShift = 64 - 8 // position of the bucket's index in the sum
)

// fineBucket is like quickBucket, but for limits that lie closer together, such as those
// of the throughput: at most one in a sixteenth of the values between two powers of two.
// cell is the fineCell of a number that is v after rounding down, and must be an index of
// the table.
func fineBucket(cells []uint64, cell, v uint64) uint64 {
	return (v + cells[cell]) >> fineShift
}

// fineCell returns the cell of a number. float64 stores the exponent and the upper bits
// next to each other, so this needs fewer instructions than for an integer. Cells of
// numbers below 1 and from 1<<quickBits on, infinity and NaN are beyond the table.
func fineCell(f float64) uint64 {
	return math.Float64bits(f)>>(fractionBits-fineBits) - exponentBias<<fineBits
}

// setFine fills the table for fineBucket, unless a cell has more than one limit, or a
// histogram needs more memory than inlineBuckets.
func (s *scale) setFine() {
	if s.kind != Explicit || s.buckets > inlineBuckets {
		return
	}
	fine := make([]uint64, quickBits<<fineBits)
	for i := range fine {
		// Numbers below 16 have cells smaller than 1, with one integer each after rounding down.
		lowest := uint64(cellStart(i))
		highest := max(uint64(cellStart(i+1)), lowest+1) - 1
		switch first, last := s.search(lowest), s.search(highest); last {
		case first:
			fine[i] = uint64(first) << fineShift
		case first + 1:
			fine[i] = uint64(last)<<fineShift - (s.limits[first] + 1)
		default:
			return
		}
	}
	s.fine = fine
}

// cellStart returns the lowest number of a cell.
func cellStart(cell int) float64 {
	return math.Float64frombits(uint64(cell+exponentBias<<fineBits) << (fractionBits - fineBits))
}
