// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"

	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// bounds are the upper bounds of the histograms of times, in seconds, throughputBounds those of the
// histograms of throughput, in bytes per second, and sizeBounds those of the histograms of sizes, in bytes.
var (
	bounds           = makeBounds(1_000, 100_000_000_000, 1e9)  // ns: 1 µs to 100 s
	throughputBounds = makeBounds(1_000, 10_000_000_000_000, 1) // 1 kB/s to 10 TB/s
	sizeBounds       = semconv.TransferSize.Bounds
)

// Bounds returns the upper bounds of the histograms of times, in seconds. They include the
// bounds of the exported metrics, so the buckets can be merged into those of the metrics.
func Bounds() []float64 { return append([]float64(nil), bounds...) }

// makeBounds returns ten bounds for each decade from first to last, divided by
// perUnit.
func makeBounds(first, last int64, perUnit float64) (b []float64) {
	steps := []int64{100, 125, 150, 200, 250, 300, 400, 500, 600, 800}
	for decade := first; decade < last; decade *= 10 {
		for _, step := range steps {
			v := decade * step / 100
			if v%first == 0 || decade > first { // the ring counts whole microseconds
				b = append(b, float64(v)/perUnit)
			}
		}
	}
	return append(b, float64(last)/perUnit)
}

// Duration formats a quantile of times, in seconds. The last bound is formatted as ">100 s",
// because the last bucket has no upper bound. NaN is empty.
func Duration(seconds float64) string {
	if longest := bounds[len(bounds)-1]; seconds >= longest {
		return ">" + units.Bare(units.Duration(longest))
	}
	return units.Duration(seconds)
}

// Quantile returns the quantile q, from 0 to 1, of a histogram with [Bounds] and a last bucket
// without a bound. It returns NaN for an empty histogram.
func Quantile(counts []uint64, q float64) float64 { return quantile(bounds, counts, q) }

// throughputQuantile returns the quantile q of a histogram of throughput, in bytes per second.
// It returns NaN for an empty histogram.
func throughputQuantile(counts []uint64, q float64) float64 {
	return quantile(throughputBounds, counts, q)
}

func quantile(bounds []float64, counts []uint64, q float64) float64 {
	var total uint64
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return math.NaN()
	}
	rank := q * float64(total)
	below := 0.0
	for i, n := range counts {
		if i == len(bounds) {
			break
		}
		if n > 0 && below+float64(n) >= rank {
			lower := 0.0
			if i > 0 {
				lower = bounds[i-1]
			}
			return lower + (bounds[i]-lower)*max(0, rank-below)/float64(n)
		}
		below += float64(n)
	}
	return bounds[len(bounds)-1]
}

// Bucket is a bucket of a histogram for display.
type Bucket struct {
	Bound float64 // upper bound in seconds or bytes per second; infinite for the last one
	Count uint64
}

// Buckets merges the counts of a histogram of times into the buckets of the
// exported metrics, so that the screen and the dashboards agree.
func Buckets(counts []uint64) []Bucket { return merge(counts, bounds, semconv.TransferDuration.Bounds) }

// ThroughputBuckets does the same for a histogram of throughput.
// The metric's bounds aren't among those of this package, so the count of a bucket is divided between them.
func ThroughputBuckets(counts []uint64) []Bucket {
	shown := semconv.TransferThroughput.Bounds
	return merge(spread(shown, throughputBounds, counts), shown, shown)
}

func merge(counts []uint64, bounds, shown []float64) []Bucket {
	merged := make([]Bucket, 0, len(shown)+1)
	for _, b := range shown {
		merged = append(merged, Bucket{Bound: b})
	}
	merged = append(merged, Bucket{Bound: math.Inf(1)})
	at := 0
	for i, n := range counts {
		for at < len(shown) && (i == len(bounds) || bounds[i] > shown[at]) {
			at++
		}
		merged[at].Count += n
	}
	return merged
}
