// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/bits"
)

// Sum is a sum of 64-bit values. It has 128 bits, so it can't overflow in practice.
type Sum struct {
	Hi uint64
	Lo uint64
}

// Add adds v.
func (s *Sum) Add(v uint64) {
	var carry uint64
	s.Lo, carry = bits.Add64(s.Lo, v, 0)
	s.Hi += carry
}

// plus adds t.
func (s *Sum) plus(t Sum) {
	var carry uint64
	s.Lo, carry = bits.Add64(s.Lo, t.Lo, 0)
	s.Hi, _ = bits.Add64(s.Hi, t.Hi, carry)
}

// sub subtracts t, which must not be larger.
func (s *Sum) sub(t Sum) {
	var borrow uint64
	s.Lo, borrow = bits.Sub64(s.Lo, t.Lo, 0)
	s.Hi, _ = bits.Sub64(s.Hi, t.Hi, borrow)
}

// Int64 returns the sum, limited to the largest int64, because counters in OTLP are
// int64 and must not decrease.
func (s Sum) Int64() int64 {
	if s.Hi != 0 || s.Lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(s.Lo)
}

// Float64 returns the nearest floating-point number.
func (s Sum) Float64() float64 {
	if s.Hi == 0 {
		return float64(s.Lo)
	}
	// float64 holds 53 of the upper 64 bits. The lowest bit decides a tie, so set
	// it if any bit is set below the upper 64.
	n := bits.LeadingZeros64(s.Hi)
	upper := s.Hi<<n | s.Lo>>(64-n)
	if s.Lo<<n != 0 {
		upper |= 1
	}
	return math.Ldexp(float64(upper), 64-n)
}

// less returns s-t, limited to the range of int64.
func (s Sum) less(t Sum) int64 {
	lo, borrow := bits.Sub64(s.Lo, t.Lo, 0)
	hi, borrow := bits.Sub64(s.Hi, t.Hi, borrow)
	switch {
	case borrow == 0:
		return Sum{Hi: hi, Lo: lo}.Int64()
	case hi == math.MaxUint64 && lo > math.MaxInt64:
		return int64(lo)
	default:
		return math.MinInt64
	}
}

// saturate returns v, limited to the largest int64.
func saturate(v uint64) int64 {
	return int64(min(v, math.MaxInt64))
}
