// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// importShapes returns shapes of imported totals with different numbers of bounds.
func importShapes(t *testing.T) (list []*tally.Shape) {
	t.Helper()
	none := tally.HistogramConfig{Kind: tally.NoHistogram}
	for _, bounds := range [][]float64{nil, {0.001}, manyBounds()[:32], manyBounds()} {
		duration := none
		if len(bounds) > 0 {
			duration = tally.HistogramConfig{Bounds: bounds}
		}
		list = append(list, shape(t, tally.Config{Duration: duration, Size: none, Throughput: none}))
	}
	return list
}

// randomValues returns values with a number of buckets. About half of them are zero.
func randomValues(r *rand.Rand, buckets int) (v tally.Values) {
	number := func() uint64 { return r.Uint64N(1000) * r.Uint64N(2) }
	for kind := range v.Sums {
		v.Sums[kind].Lo, v.Last[kind] = number(), number()
	}
	for _, d := range []*tally.Distribution{&v.Duration, &v.Post} {
		d.Sum.Lo, d.Counts = number(), make([]uint64, buckets)
		for i := range d.Counts {
			d.Counts[i] = number()
		}
	}
	v.Sums[ringbuf.TypeXferTime], v.Sums[ringbuf.TypeXferPostTime] = tally.Sum{}, tally.Sum{}
	return v
}

func TestReusedImportEqualsNewOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	shapes := importShapes(t)
	var reused *tally.Totals
	for range 200 {
		s := shapes[r.IntN(len(shapes))]
		buckets := len(s.Import(&tally.Values{}, &tally.Values{}, nil).Duration().Bounds()) + 1
		switch {
		case r.IntN(4) == 0:
			buckets = 0 // there are no values with these bounds
		case buckets == 1:
			buckets = r.IntN(50) // without bounds, all buckets are added up
		}
		v := randomValues(r, buckets)
		reused = s.Import(&v, &tally.Values{}, reused)
		want := s.Import(&v, &tally.Values{}, nil)
		if d := cmp.Diff(pointsOf(want), pointsOf(reused), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("(-new +reused)\n%s", d)
		}
		if want.Duration().HasRange() || reused.Duration().HasRange() {
			t.Fatal("imported totals have a minimum and a maximum")
		}
	}
}

func TestReusedImportDoesNotAllocate(t *testing.T) {
	for _, s := range importShapes(t) {
		v := randomValues(rand.New(rand.NewPCG(1, 1)), 20)
		totals := s.Import(&v, &tally.Values{}, nil)
		if n := testing.AllocsPerRun(10, func() { totals = s.Import(&v, &tally.Values{}, totals) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
