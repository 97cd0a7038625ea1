// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oneTwoFive returns all possible bounds, from 1 ns to 5e18 ns.
func oneTwoFive() (bounds []int64) {
	decade := int64(1)
	for range 19 {
		bounds = append(bounds, decade, 2*decade, 5*decade)
		decade *= 10
	}
	return bounds
}

func TestExplicitCountsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, bounds := range [][]int64{oneTwoFive(), {100, 200, 500, 1000}, {1e6}, nil} {
		var h Histogram
		want := make([]uint64, len(bounds)+1)
		add := func(ns int64) {
			h.Record(ns)
			i := 0
			for i < len(bounds) && ns > bounds[i] {
				i++
			}
			want[i]++
		}
		for _, b := range oneTwoFive() {
			add(b - 1)
			add(b)
			add(b + 1)
		}
		for range 20_000 {
			add(r.Int64N(1 << r.IntN(62)))
		}
		var s Sum
		s.Add(&h)
		if d := cmp.Diff(want, s.Explicit(bounds)); d != "" {
			t.Errorf("%d bounds: counts (-want +got):\n%s", len(bounds), d)
		}
	}
}

func TestExplicitRejectsOtherBounds(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a bound of 3 ns was accepted")
		}
	}()
	new(Sum).Explicit([]int64{3})
}

func TestQuantilesAreWithinHalfABucket(t *testing.T) {
	var h Histogram
	for ns := range int64(10_000) {
		h.Record(ns)
	}
	var before Sum
	before.Add(&h)
	for ns := range int64(10_000) {
		h.Record(1_000_000 + 100*ns)
	}
	var s Sum
	s.Add(&h)
	mark := before.Mark()
	for _, tt := range []struct {
		name       string
		since      *Mark
		q          float64
		least      int64
		want, slop float64
	}{
		{"of all durations", &Mark{}, 0.25, 0, 5_000, 0.006},
		{"of all durations, minimum", &Mark{}, 0, 0, 0, 0},
		{"since the mark, median", &mark, 0.5, 1_000_000, 1_500_000, 0.006},
		{"since the mark, p99", &mark, 0.99, 1_000_000, 1_990_000, 0.006},
		{"never above the longest", &mark, 1, 1_000_000, 1_999_900, 0},
		{"never below the shortest", &mark, 0, 1_000_000, 1_000_000, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := float64(s.Quantiles(tt.since, tt.least, 1_999_900, tt.q)[0])
			if d := got - tt.want; d > tt.slop*tt.want || -d > tt.slop*tt.want {
				t.Errorf("quantile %v is %v, want %v", tt.q, got, tt.want)
			}
		})
	}
	s.Subtract(&mark)
	if p := s.Point(); p.Count != 10_000 || p.Zeros != 0 || math.Abs(p.Sum-14.9995) > 1e-9 {
		t.Errorf("after Subtract: count %d, zeros %d, sum %v", p.Count, p.Zeros, p.Sum)
	}
	if d := cmp.Diff([]uint64{1, 9999}, s.Explicit([]int64{1_000_000})); d != "" {
		t.Errorf("after Subtract: explicit counts (-want +got):\n%s", d)
	}
	all := s.Mark()
	if got := s.Quantiles(&all, 0, 0, 0.5)[0]; got != 0 {
		t.Errorf("median without durations is %d, want 0", got)
	}
}
