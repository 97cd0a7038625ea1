// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

// steps holds the possible bounds of explicit histograms by octave: 1, 2 and 5 times a
// power of ten nanoseconds. An octave has at most one.
var steps [octaves]step

// step is a bound and its bucket within the octave. In an octave without a bound, the
// bucket is -1.
type step struct {
	bucket int
	ns     int64
}

func fillSteps() {
	for o := range steps {
		steps[o].bucket = -1
	}
	decade := int64(1)
	for range 19 { // up to 5e18 ns; the longest duration is 9.2e18 ns
		for _, factor := range []int64{1, 2, 5} {
			o, bucket := locate(factor * decade)
			steps[o] = step{bucket, factor * decade}
		}
		decade *= 10
	}
}

// Explicit returns the bucket counts of an explicit histogram. bounds must be ascending,
// in nanoseconds, and each must be 1, 2 or 5 times a power of ten. The result has one
// more element than bounds.
func (s *Sum) Explicit(bounds []int64) []uint64 {
	counts := make([]uint64, 0, len(bounds)+1)
	next, end := s.octaves()
	below := s.zeros // in the buckets before next
	counted := uint64(0)
	for _, ns := range bounds {
		o, bucket := locate(ns)
		if steps[o].ns != ns {
			panic("expo: each bound must be 1, 2 or 5 times a power of ten")
		}
		for ; next < min(o*perOctave+bucket, end); next++ {
			below += s.counts[next]
		}
		upTo := below + s.lower[o]
		counts = append(counts, upTo-counted)
		counted = upTo
	}
	return append(counts, s.Count()-counted)
}
