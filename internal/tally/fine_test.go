// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestFineBucketFindsTheBucketOfASearch(t *testing.T) {
	tooMany := make([]float64, inlineBuckets)
	for i := range tooMany {
		tooMany[i] = float64(i)
	}
	for name, tt := range map[string]struct {
		bounds    []float64
		supported bool
	}{
		"the catalog's":             {semconv.TransferThroughput.Bounds, true},
		"two in a sixteenth":        {[]float64{1.001e9, 1.002e9, 1.003e9}, false},
		"small, each in its cell":   {[]float64{0, 1, 2, 3, 30, 31}, true},
		"beyond the largest value":  {[]float64{1 << 47, 1 << 50, 1e300}, true},
		"too many":                  {tooMany, false},
		"at the ends of its octave": {[]float64{1<<20 - 1, 1 << 20, 1<<21 - 1}, true},
	} {
		s, err := newScale(HistogramConfig{Kind: Explicit, Bounds: tt.bounds}, 1, nil)
		must.OK(t, err)
		if got := s.fine != nil; got != tt.supported {
			t.Errorf("%s: supported: %v, want %v", name, got, tt.supported)
		}
		if s.fine == nil {
			continue
		}
		values := []uint64{0, 1, 1<<quickBits - 1}
		for _, l := range s.limits {
			values = append(values, l-1, l, l+1)
		}
		random := rand.New(rand.NewPCG(1, 1))
		for range 10_000 {
			values = append(values, random.Uint64()>>(64-quickBits)>>random.IntN(quickBits))
		}
		for _, v := range values {
			if v == 0 || v>>quickBits != 0 {
				continue
			}
			for _, f := range []float64{float64(v), math.Nextafter(float64(v+1), 0)} {
				if got, want := fineBucket(s.fine, fineCell(f), v), s.search(v); got != uint64(want) {
					t.Errorf("%s: %v is in bucket %d, want %d", name, f, got, want)
				}
			}
		}
	}
}
