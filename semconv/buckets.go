// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

import (
	"math"
	"math/bits"
	"slices"
)

// The bounds of histograms.
var (
	// Those of NIXL's own Prometheus exporter.
	durations = []float64{
		10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6,
		1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
		1, 5, 10,
	}
	// Steps of 1, 2 and 5 from 100 ns to 10 s.
	kernelDurations = []float64{
		100e-9, 200e-9, 500e-9, 1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6,
		1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 200e-3, 500e-3,
		1, 2, 5, 10,
	}
	sizes = []float64{
		1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30, 1 << 32, 1 << 34,
	}
	// A transfer below the first bound, 1 MB/s, is stuck rather than slow. The last bound, 1
	// TB/s, is above the fastest links. From 5 to 105.6 GB/s, a bound is at most 15% above the
	// last one, so that quantiles are off by at most 15% and a link at half its speed is never
	// in the bucket of one at full speed.
	throughputs = []float64{
		1e6, 1e7, 1e8, 3e8, 1e9, 2e9, 3.5e9,
		5e9, 5.75e9, 6.6e9, 7.575e9, 8.7e9,
		1e10, 1.15e10, 1.32e10, 1.515e10, 1.74e10,
		2e10, 2.3e10, 2.64e10, 3.03e10, 3.48e10,
		4e10, 4.6e10, 5.28e10, 6.06e10, 6.96e10,
		8e10, 9.2e10, 1.056e11, 2e11, 4e11, 1e12,
	}
)

// packetDurations returns bounds from 1 µs to 60 s, ten per decade: the preferred numbers
// R10 of ISO 3. The largest step between two bounds is 28%, which is the maximum error of a
// quantile that a backend interpolates.
func packetDurations() []float64 {
	const microsecond, second = 1e3, 1e9 // in nanoseconds
	bounds := make([]float64, 0, 79)
	for decade := microsecond; ; decade *= 10 {
		for _, step := range [...]float64{1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8} {
			if step*decade >= 60*second {
				return slices.Clip(append(bounds, 60))
			}
			bounds = append(bounds, step*decade/second)
		}
	}
}

// Throughput returns the throughput of a transfer in bytes per second, rounded down.
// A duration of 0 µs counts as 1 µs, because NIXL measures whole microseconds.
func Throughput(bytes, micros uint64) uint64 {
	micros = max(micros, 1)
	hi, lo := bits.Mul64(bytes, 1_000_000)
	if hi >= micros {
		return math.MaxUint64
	}
	v, _ := bits.Div64(hi, lo, micros)
	return v
}
