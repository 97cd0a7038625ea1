// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// countTimes returns the histogram of times in seconds.
func countTimes(values ...float64) []uint64 {
	counts := make([]uint64, len(bounds)+1)
	for _, v := range values {
		i, _ := slices.BinarySearch(bounds, v)
		counts[i]++
	}
	return counts
}

func TestBoundsIncludeThoseOfTheMetrics(t *testing.T) {
	if !slices.IsSorted(bounds) || bounds[0] != 1e-6 || bounds[len(bounds)-1] != 100 || len(bounds) > math.MaxUint8 {
		t.Errorf("%d bounds: %v", len(bounds), bounds)
	}
	for _, b := range semconv.TransferDuration.Bounds {
		if !slices.Contains(bounds, b) {
			t.Errorf("the bound %v of the exported metrics is missing", b)
		}
	}
	for i, b := range bounds[1:] {
		if micros := b * 1e6; b/bounds[i] > 2 || micros < 10 && math.Abs(micros-math.Round(micros)) > 1e-9 {
			t.Errorf("bound %v after %v", b, bounds[i])
		}
	}
}

func TestQuantileInterpolatesWithinABucket(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"a single value is at the end of its bucket", []float64{45e-6}, 1, 50e-6},
		{"middle of a bucket", []float64{45e-6, 45e-6}, 0.5, 45e-6},
		{"the first bucket starts at 0", []float64{0, 0}, 0.5, 0.5e-6},
		{"end of the lower bucket", []float64{45e-6, 5.5}, 0.5, 50e-6},
		{"quantile 0 is the start of the lowest bucket", []float64{45e-6, 5.5}, 0, 40e-6},
		{"beyond the last bound", []float64{1, 1000, 1000}, 0.9, 100},
	} {
		if got := Quantile(countTimes(tt.values...), tt.q); math.Abs(got-tt.want) > 1e-9*tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := Quantile(countTimes(), 0.5); !math.IsNaN(got) {
		t.Errorf("empty histogram: %v", got)
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("nil histogram: %v", got)
	}
}

func TestQuantilesOfASmoothDistributionAreWithinFivePercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 20_000)
	for i := range values {
		values[i] = 150e-6 * math.Exp(rng.NormFloat64())
	}
	counts := countTimes(values...)
	slices.Sort(values)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999} {
		exact := values[int(q*float64(len(values)))]
		if got := Quantile(counts, q); math.Abs(got/exact-1) > 0.05 {
			t.Errorf("quantile %v is %v, want %v", q, got, exact)
		}
	}
}

func TestBucketsAreThoseOfTheMetrics(t *testing.T) {
	got := Buckets(countTimes(1e-6, 10e-6, 11e-6, 30e-6, 2.4e-3, 2.5e-3, 2.6e-3, 9, 11, 99, 1000))
	var full []Bucket
	for _, b := range got {
		if b.Count > 0 {
			full = append(full, b)
		}
	}
	want := []Bucket{{10e-6, 2}, {25e-6, 1}, {50e-6, 1}, {2.5e-3, 2}, {5e-3, 1}, {10, 1}, {math.Inf(1), 3}}
	if diff := cmp.Diff(want, full); diff != "" {
		t.Error(diff)
	}
	if len(got) != len(semconv.TransferDuration.Bounds)+1 {
		t.Errorf("%d buckets", len(got))
	}
}

func TestDurationFormatsTheLastBoundAsGreater(t *testing.T) {
	for _, tt := range []struct {
		seconds float64
		want    string
	}{{math.NaN(), ""}, {2.31e-3, "2.31 ms"}, {99.9, "99.9 s"}, {100, ">100 s"}} {
		if got := Duration(tt.seconds); got != tt.want {
			t.Errorf("Duration(%v) = %q, want %q", tt.seconds, got, tt.want)
		}
	}
}

// The bounds of the metric are finer than those of the samples in places, so that moving a bucket as a
// whole would leave others empty.
func TestThroughputBucketsHaveNoGaps(t *testing.T) {
	counts := make([]uint64, len(throughputBounds)+1)
	for i := 40; i < 80; i++ {
		counts[i] = 100
	}
	list := ThroughputBuckets(counts)
	first := slices.IndexFunc(list, func(b Bucket) bool { return b.Count > 0 })
	var sum uint64
	for i := first; sum < 4000; i++ {
		if i == len(list) || list[i].Count == 0 {
			t.Fatalf("%d of %d values in %v", sum, 4000, list)
		}
		sum += list[i].Count
	}
}
