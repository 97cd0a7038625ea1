// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "math"

const (
	// MaxScale is the finest scale: a bucket's upper bound is 2^(1/64), or
	// 1.1 %, above its lower one.
	MaxScale = 6

	// A duration is 1 ns to 2^63 ns, so its base-2 exponent in seconds is -30
	// to 33: 64 octaves.
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

// A fraction's leading guessBits bits name a stretch of an octave that is
// narrower than any bucket. So it meets one bound at most, and a guess of the
// bucket needs one comparison to be made right.
const guessBits = MaxScale + 1

var (
	// lower[i] is the fraction of 2^(i/64), bucket i's lower bound, and
	// lower[64] is more than any fraction.
	lower [perOctave + 1]uint64
	// guess is the bucket of the least fraction with these leading bits.
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
	fillSteps() // by locate, which needs the tables
}

// locate is the octave, counted from firstOctave, and the bucket in it of a
// duration of ns nanoseconds, which must be more than 0.
func locate(ns int64) (octave, bucket int) {
	// A bucket holds its upper bound, not its lower one. One step down turns
	// that into the opposite, which is how bits are compared.
	b := math.Float64bits(float64(ns)*1e-9) - 1
	fraction := b & fractionMask
	bucket = int(guess[fraction>>(fractionBits-guessBits)])
	if fraction >= lower[bucket+1] {
		bucket++
	}
	return int(b>>fractionBits) - exponentBias - firstOctave, bucket
}
