// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"math"
	"slices"
)

// Count returns the number of added durations.
func (s *Sum) Count() uint64 {
	n := s.zeros
	from, to := s.octaves()
	for _, c := range s.counts[from:to] {
		n += c
	}
	return n
}

// Mark is a copy of the counts of a Sum. It only includes the octaves in use.
type Mark struct {
	zeros       uint64
	nanoseconds int64
	first       int // the first octave
	lower       []uint64
	counts      []uint64
}

// Mark returns a copy of the sum's counts.
func (s *Sum) Mark() Mark {
	from, to := s.octaves()
	return Mark{
		zeros: s.zeros, nanoseconds: s.nanoseconds, first: from / perOctave,
		lower: slices.Clone(s.lower[from/perOctave : to/perOctave]), counts: slices.Clone(s.counts[from:to]),
	}
}

// Subtract subtracts the counts of an earlier mark. It doesn't change the extremes.
func (s *Sum) Subtract(m *Mark) {
	s.zeros -= m.zeros
	s.nanoseconds -= m.nanoseconds
	for i, n := range m.lower {
		s.lower[m.first+i] -= n
	}
	for i, n := range m.counts {
		s.counts[m.first*perOctave+i] -= n
	}
}

// Quantiles estimates quantiles, from 0 to 1, of the durations that were added after
// the mark, in nanoseconds. least and most are the extremes of these durations. Each
// estimate is within half a bucket (0.6%) of the duration of that rank. Without
// durations, all estimates are 0.
func (s *Sum) Quantiles(since *Mark, least, most int64, quantiles ...float64) []int64 {
	zeros := s.zeros - since.zeros
	from, to := s.octaves()
	counts := slices.Clone(s.counts[from:to])
	for i, n := range since.counts {
		counts[since.first*perOctave-from+i] -= n
	}
	total := zeros
	for _, n := range counts {
		total += n
	}
	estimates := make([]int64, len(quantiles))
	for q, quantile := range quantiles {
		if total == 0 {
			break
		}
		rank := uint64(math.Ceil(quantile * float64(total)))
		estimates[q] = min(max(valueAt(counts, from, zeros, rank), least), most)
	}
	return estimates
}

// valueAt returns the middle of the bucket with the duration of a rank, in nanoseconds.
// counts starts with the bucket from.
func valueAt(counts []uint64, from int, zeros, rank uint64) int64 {
	passed := zeros
	if passed >= rank {
		return 0
	}
	for i, n := range counts {
		if passed += n; passed >= rank {
			middle := math.Exp2((float64(from+i+firstIndex) + 0.5) / perOctave)
			return int64(min(math.Round(middle*1e9), math.MaxInt64/2))
		}
	}
	return 0
}
