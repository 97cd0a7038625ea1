// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

func TestHistogram(t *testing.T) {
	h := func(bounds []float64, counts ...uint64) diagnose.Histogram {
		return diagnose.Histogram{Bounds: bounds, Counts: counts}
	}
	bounds, others := []float64{1, 2, 4}, []float64{1, 3, 4}
	for name, tt := range map[string]struct {
		got, want diagnose.Histogram
	}{
		"an increase":               {h(bounds, 5, 6, 7, 8).Since(h(bounds, 1, 2, 7, 0)), h(bounds, 4, 4, 0, 8)},
		"an agent that restarted":   {h(bounds, 1, 6, 0, 0).Since(h(bounds, 5, 2, 0, 0)), h(bounds, 1, 4, 0, 0)},
		"other bounds":              {h(bounds, 5, 6, 7, 8).Since(h(others, 1, 2, 3, 4)), h(bounds, 5, 6, 7, 8)},
		"nothing before":            {h(bounds, 5, 6, 7, 8).Since(diagnose.Histogram{}), h(bounds, 5, 6, 7, 8)},
		"a sum":                     {sum(h(bounds, 1, 2, 3, 4), h(bounds, 10, 20, 30, 40)), h(bounds, 11, 22, 33, 44)},
		"a sum of other bounds":     {sum(h(bounds, 1, 2, 3, 4), h(others, 10, 20, 30, 40)), h(bounds, 11, 2, 53, 44)},
		"a sum of higher bounds":    {sum(h(bounds, 0, 0, 0, 0), h([]float64{8}, 10, 20)), h(bounds, 0, 0, 0, 30)},
		"a sum of nearly the same":  {sum(h(bounds, 0, 0, 0, 0), h([]float64{2 + 1e-12}, 10, 0)), h(bounds, 0, 10, 0, 0)},
		"a sum of an empty one":     {sum(h(bounds, 1, 2, 3, 4), diagnose.Histogram{}), h(bounds, 1, 2, 3, 4)},
		"a sum into the last count": {sum(h(bounds, 0, 0, 0, 0), h(nil, 7)), h(bounds, 0, 0, 0, 7)},
	} {
		if fmt.Sprint(tt.got) != fmt.Sprint(tt.want) {
			t.Errorf("%s is %v, want %v", name, tt.got, tt.want)
		}
	}
	for _, tt := range []struct {
		h       diagnose.Histogram
		q, want float64
	}{
		{h(bounds, 10, 10, 0, 0), 0.25, 0.5},
		{h(bounds, 10, 10, 0, 0), 0.5, 1},
		{h(bounds, 10, 10, 0, 0), 0.75, 1.5},
		{h(bounds, 10, 10, 0, 0), 1, 2},
		{h(bounds, 0, 10, 0, 10), 0, 1},
		{h(bounds, 0, 0, 10, 0), 0.5, 3},
		{h(bounds, 0, 0, 1, 9), 0.5, 4},
		{h(bounds, 0, 0, 0, 0), 0.5, math.NaN()},
		{h(nil, 5), 0.5, math.NaN()},
	} {
		if got := tt.h.Quantile(tt.q); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("quantile %v of %v is %v, want %v", tt.q, tt.h.Counts, got, tt.want)
		}
	}
}

func sum(h, other diagnose.Histogram) diagnose.Histogram {
	h.Add(other)
	return h
}
