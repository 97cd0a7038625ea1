// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "math"

// A float64 is 2^exponent * (1 + fraction/2^52).
const (
	fractionBits = 52
	fractionMask = 1<<fractionBits - 1
	exponentBias = 1023
)

// index returns the bucket of a positive, normal v at a scale: the bucket with the
// lowest upper bound that v doesn't exceed.
func index(v float64, scale int32) int32 {
	b := math.Float64bits(v)
	exponent := int32(b>>fractionBits) - exponentBias
	fraction := b & fractionMask
	switch {
	case scale <= tableScale:
		// Each bucket consists of whole buckets of a finer scale.
		return (exponent<<tableScale + subBucket(fraction)) >> (tableScale - scale)
	case fraction == 0:
		return exponent<<scale - 1 // a power of two belongs to the bucket that it closes
	default:
		of := int32(math.Log2(1+float64(fraction)/(1<<fractionBits)) * float64(int32(1)<<scale))
		return exponent<<scale + min(of, 1<<scale-1) // the logarithm of a number next to 2 may round to 1
	}
}

// tableScale is the finest scale that has a table. A range of ten octaves, such as
// 10 µs to 10 ms, fits in 160 buckets at scale 4.
const tableScale = 6

// subBucket returns the bucket of 1 + fraction/2^52 at tableScale, -1 for 1. Adding
// the cell's value sets the upper bits to i for a fraction up to the first bound in or
// above the cell, and to i+1 for a fraction beyond this bound.
func subBucket(fraction uint64) int32 {
	return int32((fraction+subCells[fraction>>(fractionBits-subCellBits)])>>fractionBits) - 1
}

// subCellBits makes cells smaller than the smallest bucket, so that a cell contains at
// most one bound.
const subCellBits = tableScale + 1

var subCells = func() (cells [1 << subCellBits]uint64) {
	i, bound := 0, uint64(0)
	for n := range cells {
		for uint64(n)<<(fractionBits-subCellBits) > bound {
			i++
			bound = subBound(i)
		}
		cells[n] = uint64(i)<<fractionBits + fractionMask - bound
	}
	return cells
}()

// subBound returns the largest fraction within bound i, 2^(i/2^tableScale).
func subBound(i int) uint64 {
	if i == 1<<tableScale {
		return fractionMask
	}
	return math.Float64bits(math.Exp2(float64(i)/(1<<tableScale))) & fractionMask
}
