// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// bounds are the upper bounds of a histogram's buckets.
type bounds struct {
	at    []int64   // ascending
	out   []float64 // the same, in the metric's unit
	per   float64   // recorded units per metric unit
	first [65]int   // by bit length of a value: the first possible bucket
}

// The bounds of the histograms, recorded in bytes, microseconds and bytes/s.
var (
	sizeBounds       = newBounds(semconv.SizeBounds(), 1)
	durationBounds   = newBounds(semconv.DurationBounds(), 1e6)
	throughputBounds = newBounds(semconv.ThroughputBounds(), 1)
)

// maxBuckets is at least the number of buckets of each histogram.
const maxBuckets = 20

func newBounds(out []float64, per float64) bounds {
	b := bounds{out: out, per: per}
	for _, v := range out {
		b.at = append(b.at, int64(math.Round(v*per)))
	}
	for n := range b.first {
		least := int64(0)
		if n > 0 {
			least = int64(min(uint64(1)<<(n-1), math.MaxInt64))
		}
		for b.first[n] < len(b.at) && least > b.at[b.first[n]] {
			b.first[n]++
		}
	}
	return b
}

// bucket returns the index of the first bucket whose upper bound is at least v.
func (b *bounds) bucket(v int64) int {
	i := b.first[bits.Len64(uint64(v))]
	for i < len(b.at) && v > b.at[i] {
		i++
	}
	return i
}

// unit returns a value in the metric's unit. Like the receiver, it divides rather
// than multiplies, so that both report exactly the same value.
func (b *bounds) unit(v int64) float64 { return float64(v) / b.per }

// histogram counts non-negative values.
type histogram struct {
	sum    saturating
	fall   atomic.Int64 // MaxInt64 minus the minimum; 0 if there are no values
	rise   atomic.Int64 // the maximum
	counts [maxBuckets]atomic.Int64
}

func (h *histogram) record(v int64, bucket int) {
	h.sum.add(v)
	lift(&h.fall, math.MaxInt64-v)
	lift(&h.rise, v)
	// The count is stored last and loaded first, so the sum, the minimum and the
	// maximum include every counted value.
	h.counts[bucket].Add(1)
}

// rates is a histogram of throughput. The sum of a few hundred million rates can
// exceed an int64, so it is kept in two words.
type rates struct {
	histogram              // its sum covers the upper bits
	low       atomic.Int64 // sum of the lowest lowBits bits
}

const lowBits = 16

func (r *rates) record(v int64, bucket int) {
	r.sum.add(v >> lowBits)
	r.low.Add(v & (1<<lowBits - 1))
	lift(&r.fall, math.MaxInt64-v)
	lift(&r.rise, v)
	r.counts[bucket].Add(1) // last, as in histogram.record
}

func (r *rates) addTo(d *distribution) {
	r.histogram.addTo(d)
	d.low += r.low.Load()
}

// lift raises a word to a greater value. After the first few values, it usually
// only takes a load.
func lift(word *atomic.Int64, to int64) {
	for {
		old := word.Load()
		if to <= old || word.CompareAndSwap(old, to) {
			return
		}
	}
}

// distribution is the content of one or more histograms.
type distribution struct {
	counts     [maxBuckets]int64
	sum, low   int64 // low is only used for rates
	fall, rise int64
	exemplars  []*exemplar
}

func (h *histogram) addTo(d *distribution) {
	for i := range d.counts {
		d.counts[i] += h.counts[i].Load()
	}
	d.add(&distribution{sum: h.sum.load(), fall: h.fall.Load(), rise: h.rise.Load()})
}

func (d *distribution) add(o *distribution) {
	for i := range d.counts {
		d.counts[i] += o.counts[i]
	}
	d.sum, d.low = saturatingSum(d.sum, o.sum), d.low+o.low
	d.fall, d.rise = max(d.fall, o.fall), max(d.rise, o.rise)
}

func (d *distribution) count() (n int64) {
	for _, c := range d.counts {
		n += c
	}
	return n
}

// rateSum returns the sum of rates.
func (d *distribution) rateSum() float64 {
	hi, lo := bits.Mul64(uint64(d.sum), 1<<lowBits)
	lo, carry := bits.Add64(lo, uint64(d.low), 0)
	return float64(hi+carry)*(1<<64) + float64(lo)
}

// least returns the minimum.
func (d *distribution) least() int64 { return math.MaxInt64 - d.fall }
