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

// index is the bucket of a positive, normal v at a scale: the one whose upper
// bound is the first that v doesn't exceed.
func index(v float64, scale int32) int32 {
	b := math.Float64bits(v)
	exponent := int32(b>>fractionBits) - exponentBias
	fraction := b & fractionMask
	switch {
	case scale <= tableScale:
		// The buckets of a scale are whole buckets of each finer one.
		return (exponent<<tableScale + subBucket(fraction)) >> (tableScale - scale)
	case fraction == 0:
		return exponent<<scale - 1 // a power of two is the bound of the bucket below it
	default:
		of := int32(math.Log2(1+float64(fraction)/(1<<fractionBits)) * float64(int32(1)<<scale))
		return exponent<<scale + min(of, 1<<scale-1) // the logarithm of a number next to 2 may round to 1
	}
}

// tableScale is the finest scale that has a table. Ten octaves of values, as
// of 10 µs to 10 ms, fit into 160 buckets at scale 4.
const tableScale = 6

// subBucket is the bucket of 1 + fraction/2^52 at tableScale, -1 for 1. What
// stands in a cell makes i of the upper bits for a fraction up to the first
// bound that is in or above the cell, and i+1 for one beyond it.
func subBucket(fraction uint64) int32 {
	return int32((fraction+subCells[fraction>>(fractionBits-subCellBits)])>>fractionBits) - 1
}

// subCellBits makes cells that are smaller than the smallest bucket, so that
// one bound at most lies within a cell.
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

// subBound is the largest fraction that is within bound i, 2^(i/2^tableScale).
func subBound(i int) uint64 {
	if i == 1<<tableScale {
		return fractionMask
	}
	return math.Float64bits(math.Exp2(float64(i)/(1<<tableScale))) & fractionMask
}
