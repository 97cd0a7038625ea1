// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "math"

const (
	// MaxScale is the finest scale: a bucket's upper bound is its lower bound times
	// 2^(1/64), 1.1% more.
	MaxScale = 6

	// Durations are from 1 ns to 2^63 ns. In seconds, their base-2 exponents are from
	// -30 to 33: 64 octaves.
	octaves     = 64
	firstOctave = -30
	perOctave   = 1 << MaxScale
)

// The parts of a float64.
const (
	fractionBits = 52
	fractionMask = 1<<fractionBits - 1
	exponentBias = 1023
)

// All fractions with the same leading guessBits bits form an interval that is narrower
// than any bucket, so it contains at most one bound. A guess from these bits therefore
// needs only one comparison to find the bucket.
const guessBits = MaxScale + 1

var (
	// lower[i] is the fraction of 2^(i/64), the lower bound of bucket i. lower[64] is
	// greater than any fraction.
	lower [perOctave + 1]uint64
	// guess is the bucket of the smallest fraction with these leading bits.
	guess [1 << guessBits]uint8
)

func init() {
	for i := range perOctave {
		lower[i] = math.Float64bits(math.Exp2(float64(i)/perOctave)) & fractionMask
	}
	lower[perOctave] = 1 << fractionBits
	for g, i := 0, 0; g < len(guess); g++ {
		for uint64(g)<<(fractionBits-guessBits) >= lower[i+1] {
			i++
		}
		guess[g] = uint8(i)
	}
	fillSteps() // uses locate, which needs these tables
}

// locate returns the octave, relative to firstOctave, and its bucket for a duration of
// ns nanoseconds, which must be greater than 0.
func locate(ns int64) (octave, bucket int) {
	// Upper bounds of buckets are inclusive, but the comparisons below have inclusive
	// lower bounds. Using the next smaller float64 converts one into the other.
	b := math.Float64bits(float64(ns)*1e-9) - 1
	fraction := b & fractionMask
	bucket = int(guess[fraction>>(fractionBits-guessBits)])
	if fraction >= lower[bucket+1] {
		bucket++
	}
	return int(b>>fractionBits) - exponentBias - firstOctave, bucket
}
