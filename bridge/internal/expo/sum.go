// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "math/bits"

// MaxSize is the maximum number of buckets of a [Point]: the default of the
// OpenTelemetry SDKs.
const MaxSize = 160

// firstIndex is the index of the first possible bucket at MaxScale.
const firstIndex = firstOctave * perOctave

// Sum reads histograms and adds them up. The zero value is an empty sum. A Sum is not
// safe for concurrent use, but the added histograms may be written to concurrently.
type Sum struct {
	used        uint64 // bit set of the octaves with counts
	counts      [octaves * perOctave]uint64
	lower       [octaves]uint64
	zeros       uint64
	nanoseconds int64
	extremes    extremes
}

// Point is the data point of an exponential histogram, in seconds. Count is always the
// sum of Zeros and Counts.
type Point struct {
	Count    uint64
	Zeros    uint64
	Sum      float64
	Min, Max float64 // 0 if Count is 0
	Scale    int32
	Offset   int32 // index of the first bucket
	Counts   []uint64
}

// Add adds the counts of h.
func (s *Sum) Add(h *Histogram) {
	// The counts are read first; see Record.
	s.zeros += h.zeros.Load()
	for i := range h.buckets {
		o := h.buckets[i].Load()
		if o == nil {
			continue
		}
		s.used |= 1 << i
		s.lower[i] += o.lower.Load()
		for j := range o.buckets {
			s.counts[i*perOctave+j] += o.buckets[j].Load()
		}
	}
	s.nanoseconds += h.sum.Load()
	for _, e := range []*extremes{&h.newest, &h.past} { // in this order; see moveInto
		if least, most, ok := e.load(); ok {
			s.extremes.add(least)
			s.extremes.add(most)
		}
	}
}

// Point returns the sum at the finest scale with at most MaxSize buckets.
func (s *Sum) Point() Point {
	p := s.Total()
	p.Scale = MaxScale
	s.fill(&p)
	return p
}

// Total returns the Point without its buckets.
func (s *Sum) Total() Point {
	p := Point{Count: s.Count(), Zeros: s.zeros}
	if p.Count == 0 {
		return p
	}
	p.Sum = seconds(s.nanoseconds)
	least, most, _ := s.extremes.load()
	p.Min, p.Max = seconds(least), seconds(most)
	return p
}

// fill sets the scale and the buckets.
func (s *Sum) fill(p *Point) {
	first, last := s.span()
	if first > last {
		return
	}
	down := 0
	for (last>>down)-(first>>down) >= MaxSize {
		down++
	}
	p.Scale -= int32(down)
	p.Offset = int32(first >> down)
	p.Counts = make([]uint64, (last>>down)-(first>>down)+1)
	for i := first; i <= last; i++ {
		n := s.counts[i-firstIndex]
		p.Counts[i>>down-int(p.Offset)] += n
	}
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// span returns the indexes of the first and the last bucket in use at MaxScale. If there
// is none, first is greater than last.
func (s *Sum) span() (first, last int) {
	from, to := s.octaves()
	for from < to && s.counts[from] == 0 {
		from++
	}
	for to > from && s.counts[to-1] == 0 {
		to--
	}
	return from + firstIndex, to - 1 + firstIndex
}

// octaves returns the range of counts that covers all octaves in use.
func (s *Sum) octaves() (from, to int) {
	return bits.TrailingZeros64(s.used) % octaves * perOctave, bits.Len64(s.used) * perOctave
}

// Reset empties the sum.
func (s *Sum) Reset() {
	from, to := s.octaves()
	clear(s.counts[from:to])
	clear(s.lower[:])
	s.used, s.zeros, s.nanoseconds, s.extremes = 0, 0, 0, extremes{}
}

// Nanoseconds returns the sum of the added durations.
func (s *Sum) Nanoseconds() int64 { return s.nanoseconds }
