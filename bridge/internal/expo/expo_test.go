// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func point(ns ...int64) Point {
	var h Histogram
	for _, n := range ns {
		h.Record(n)
	}
	var s Sum
	s.Add(&h)
	return s.Point()
}

func TestPointHasTheRecordedDurations(t *testing.T) {
	const s = int64(1e9)
	for _, tt := range []struct {
		name string
		ns   []int64
		want Point
	}{
		{"empty", nil, Point{Scale: 6}},
		{"zeros", []int64{0, 0}, Point{Count: 2, Zeros: 2, Scale: 6}},
		{"negative is zero", []int64{-5}, Point{Count: 1, Zeros: 1, Scale: 6}},
		{
			"one",
			[]int64{3 * s / 2},
			// 1.5 s lies in (2^(37/64), 2^(38/64)].
			Point{Count: 1, Sum: 1.5, Min: 1.5, Max: 1.5, Scale: 6, Offset: 37, Counts: []uint64{1}},
		},
		{
			"upper bounds are inclusive",
			[]int64{s, s + 1},
			Point{Count: 2, Sum: 2.000000001, Min: 1, Max: 1.000000001, Scale: 6, Offset: -1, Counts: []uint64{1, 1}},
		},
		{
			"160 buckets fit", []int64{s + 1, 5650 * s / 1000}, // 2^2.498
			Point{Count: 2, Sum: 6.650000001, Min: 1.000000001, Max: 5.65, Scale: 6, Counts: ends(160)},
		},
		{
			"161 buckets don't fit", []int64{s + 1, 5700 * s / 1000}, // 2^2.511
			Point{Count: 2, Sum: 6.700000001, Min: 1.000000001, Max: 5.7, Scale: 5, Counts: ends(81)},
		},
		{
			"a zero needs no bucket",
			[]int64{0, 4 * s},
			Point{Count: 2, Zeros: 1, Sum: 4, Max: 4, Scale: 6, Offset: 127, Counts: []uint64{1}},
		},
		{
			"the whole range",
			[]int64{1, math.MaxInt64 - 1},
			Point{
				Count: 2, Sum: float64(math.MaxInt64) / 1e9, Min: 1e-9, Max: float64(math.MaxInt64) / 1e9,
				Scale: 1, Offset: -60, Counts: ends(127),
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, point(tt.ns...)); d != "" {
				t.Errorf("Point() (-want +got):\n%s", d)
			}
		})
	}
}

// ends returns n buckets. The first and the last have a count of 1.
func ends(n int) []uint64 {
	c := make([]uint64, n)
	c[0], c[n-1] = 1, 1
	return c
}

func TestLocateReturnsTheBucketOfADuration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		ns := 1 + r.Int64N(1<<r.IntN(63))
		o, b := locate(ns)
		if o < 0 || o >= octaves || b < 0 || b >= perOctave {
			t.Fatalf("locate(%d) = %d, %d: out of range", ns, o, b)
		}
		index := float64((o+firstOctave)*perOctave + b)
		v := float64(ns) / 1e9
		const ulps = 1e-15 // rounding error of a bound
		if lo, hi := math.Exp2(index/perOctave), math.Exp2((index+1)/perOctave); v < lo*(1-ulps) || v > hi*(1+ulps) {
			t.Fatalf("%d ns is in bucket (%v, %v]", ns, lo, hi)
		}
	}
}

func TestSumOfHistogramsEqualsOneHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all []int64
	var s Sum
	for range 5 {
		var h Histogram
		for range 1000 {
			ns := r.Int64N(1 << r.IntN(40))
			all = append(all, ns)
			h.Record(ns)
		}
		s.Add(&h)
	}
	if d := cmp.Diff(point(all...), s.Point()); d != "" {
		t.Errorf("five histograms differ from one (-one +five):\n%s", d)
	}
}

func TestSumHasCountAndNanoseconds(t *testing.T) {
	var h Histogram
	var sum int64
	ns := []int64{0, 1, 5, 1e3, 1e6, 1e9, 1e12}
	for _, n := range ns {
		h.Record(n)
		sum += n
	}
	if got := h.Count(); got != uint64(len(ns)) {
		t.Errorf("Count() = %d, want %d", got, len(ns))
	}
	if got := h.Nanoseconds(); got != sum {
		t.Errorf("Nanoseconds() = %d, want %d", got, sum)
	}
}

func TestRestartResetsOnlyTheExtremes(t *testing.T) {
	var h Histogram
	extremes := func() []int64 {
		least, most, ok := h.Extremes()
		if !ok {
			return nil
		}
		return []int64{least, most}
	}
	steps := []struct {
		do   func()
		want []int64
	}{
		{func() {}, nil},
		{func() { h.Record(0) }, []int64{0, 0}},
		{func() { h.Record(50) }, []int64{0, 50}},
		{func() { h.Restart() }, nil},
		{func() { h.Record(20); h.Record(10) }, []int64{10, 20}},
		{func() { h.Restart(); h.Restart() }, nil},
	}
	for i, step := range steps {
		step.do()
		if got := extremes(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: Extremes() = %v, want %v", i, got, step.want)
		}
	}
	var s Sum
	s.Add(&h)
	if p := s.Point(); p.Min != 0 || p.Max != 50e-9 || p.Count != 4 {
		t.Errorf("Restart changed the sum: %+v", p)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var h Histogram
	h.Record(1000)
	if n := testing.AllocsPerRun(1000, func() { h.Record(1000) }); n != 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
}

// bounds returns the upper bound of the first bucket and the lower bound of the last
// one.
func bounds(p Point) (lowest, highest float64) {
	base := math.Exp2(math.Exp2(-float64(p.Scale)))
	const slack = 1e-12
	first, last := float64(p.Offset)+1, float64(p.Offset)+float64(len(p.Counts))-1
	return math.Pow(base, first) * (1 + slack), math.Pow(base, last) * (1 - slack)
}
