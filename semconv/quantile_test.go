// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// histogramQuantile is Prometheus' function of that name, for values up to the last bound.
func histogramQuantile(q float64, bounds, values []float64) float64 {
	counts := make([]float64, len(bounds))
	for _, v := range values {
		i, _ := slices.BinarySearch(bounds, v)
		counts[i]++
	}
	rank, below := q*float64(len(values)), 0.0
	for i, c := range counts {
		if below+c >= rank {
			lower := 0.0
			if i > 0 {
				lower = bounds[i-1]
			}
			return lower + (bounds[i]-lower)*(rank-below)/c
		}
		below += c
	}
	return math.NaN()
}

// Some distributions are narrow, as on an idle link, and some have two peaks, as with large and small
// blocks.
func TestThroughputQuantilesAreWithin15Percent(t *testing.T) {
	const least, most = 5e9, 100e9
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		centers := []float64{least * math.Pow(most/least, random.Float64()), least * math.Pow(most/least, random.Float64())}
		spread, second := random.Float64()*random.Float64(), random.Float64()
		values := make([]float64, 1+random.IntN(200))
		for i := range values {
			center := centers[0]
			if random.Float64() < second {
				center = centers[1]
			}
			values[i] = min(max(center*math.Exp(spread*random.NormFloat64()), least), most)
		}
		slices.Sort(values)
		for _, q := range []float64{0.5, 0.9} {
			want := values[int(math.Ceil(q*float64(len(values))))-1]
			if got := histogramQuantile(q, semconv.TransferThroughput.Bounds, values); math.Abs(got-want) > 0.15*want+1 {
				t.Fatalf("quantile %v is %.4g, want %.4g; centers %v, spread %v", q, got, want, centers, spread)
			}
		}
	}
}

// A link of 100 to 800 Gbit/s, and the same link at half its speed.
func TestLinkAndHalfItsSpeedAreInDifferentBuckets(t *testing.T) {
	bucket := func(v float64) int {
		i, _ := slices.BinarySearch(semconv.TransferThroughput.Bounds, v)
		return i
	}
	for _, gigabits := range []float64{100, 200, 400, 800} {
		full := gigabits * 1e9 / 8
		for _, share := range []float64{0.8, 0.9, 1} { // what a transfer gets of it
			if a, b := bucket(share*full), bucket(share*full/2); a-b < 2 {
				t.Errorf("%v Gbit/s are in bucket %d, half of it in %d", share*gigabits, a, b)
			}
		}
	}
}
