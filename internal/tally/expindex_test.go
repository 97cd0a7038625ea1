// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"testing"
)

// A power of two is a bound at every scale. It belongs to the bucket that it closes.
func TestPowersOfTwoAreBoundsAtEveryScale(t *testing.T) {
	for scale := int32(minScale); scale <= maxScale; scale++ {
		for exponent := -20; exponent <= 64; exponent++ {
			v := math.Ldexp(1, exponent)
			want := int32(math.Ceil(math.Ldexp(float64(exponent), int(scale)))) - 1
			if got := index(v, scale); got != want {
				t.Fatalf("scale %d: 2^%d is in bucket %d, want %d", scale, exponent, got, want)
			}
			want = int32(math.Floor(math.Ldexp(float64(exponent), int(scale))))
			if got := index(math.Nextafter(v, math.Inf(1)), scale); got != want {
				t.Fatalf("scale %d: above 2^%d is bucket %d, want %d", scale, exponent, got, want)
			}
			want = int32(math.Ceil(math.Ldexp(float64(exponent), int(scale)))) - 1
			if got := index(math.Nextafter(v, 0), scale); got != want {
				t.Fatalf("scale %d: below 2^%d is bucket %d, want %d", scale, exponent, got, want)
			}
		}
	}
}

// Some scales use a table and others a logarithm.
func TestIndexesOfAllScalesAgree(t *testing.T) {
	for v := 1e-6; v < 1e20; v *= 1.001 {
		finest := index(v, maxScale)
		for scale := int32(minScale); scale < maxScale; scale++ {
			if got, want := index(v, scale), finest>>(maxScale-scale); got != want {
				t.Fatalf("%v is in bucket %d of scale %d, want %d", v, got, scale, want)
			}
		}
	}
}
