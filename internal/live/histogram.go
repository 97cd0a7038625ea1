// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"math"
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Histogram is a distribution. It is empty if it is disabled.
type Histogram struct {
	// Counts has a count per bucket. An explicit histogram has one more than bounds.
	Counts []uint64 `json:"counts,omitempty"`
	// Bounds are the inclusive upper bounds of an explicit histogram.
	Bounds []float64 `json:"bounds,omitempty"`
	// Exponential is set for an exponential histogram.
	Exponential *Exponential `json:"exponential,omitempty"`
}

// Exponential describes the buckets of an exponential histogram, as in OTLP: bucket i is
// (base^(Offset+i), base^(Offset+i+1)], where base is 2^(2^-Scale).
type Exponential struct {
	Scale  int32  `json:"scale"`
	Offset int32  `json:"offset"`
	Zero   uint64 `json:"zero,omitempty"` // values that are 0
}

// newHistogram returns the sum of histograms of one kind.
func newHistogram(list ...*tally.Histogram) (h Histogram) {
	for _, from := range list {
		switch from.Kind() {
		case tally.Explicit:
			h.addExplicit(from)
		case tally.Exponential:
			h.addExponential(from.Buckets())
		case tally.NoHistogram:
		}
	}
	return h
}

func (h *Histogram) addExplicit(from *tally.Histogram) {
	if h.Counts == nil {
		h.Counts, h.Bounds = slices.Clone(from.Counts()), from.Bounds()
		return
	}
	for i, n := range from.Counts() {
		h.Counts[i] += n
	}
}

func (h *Histogram) addExponential(b tally.Buckets) {
	if h.Exponential == nil {
		h.Exponential = &Exponential{Scale: b.Scale, Offset: b.Offset, Zero: b.Zero}
		h.Counts = slices.Clone(b.Counts)
		return
	}
	e := h.Exponential
	e.Zero += b.Zero
	if len(b.Counts) == 0 {
		return
	}
	if len(h.Counts) == 0 {
		e.Scale, e.Offset, h.Counts = b.Scale, b.Offset, slices.Clone(b.Counts)
		return
	}
	scale := min(e.Scale, b.Scale)
	at := func(offset int32, i int, from int32) int32 { return (offset + int32(i)) >> (from - scale) }
	first := min(at(e.Offset, 0, e.Scale), at(b.Offset, 0, b.Scale))
	last := max(at(e.Offset, len(h.Counts)-1, e.Scale), at(b.Offset, len(b.Counts)-1, b.Scale))
	sum := make([]uint64, last-first+1)
	for i, n := range h.Counts {
		sum[at(e.Offset, i, e.Scale)-first] += n
	}
	for i, n := range b.Counts {
		sum[at(b.Offset, i, b.Scale)-first] += n
	}
	e.Scale, e.Offset, h.Counts = scale, first, sum
}

// Explicit returns the histogram as upper bounds, and one more count than bounds. Buckets of a
// later state of the same histogram are those of an earlier one, or unite several of them.
// It returns nil for an empty histogram.
func (h *Histogram) Explicit() (bounds []float64, counts []uint64) {
	if h.Exponential == nil {
		if len(h.Counts) != len(h.Bounds)+1 || len(h.Bounds) == 0 {
			return nil, nil
		}
		return h.Bounds, h.Counts
	}
	e := h.Exponential
	bounds, counts = []float64{0}, []uint64{e.Zero}
	if len(h.Counts) > 0 {
		bounds, counts = append(bounds, e.edge(0)), append(counts, 0)
		for i, n := range h.Counts {
			bounds, counts = append(bounds, e.edge(i+1)), append(counts, n)
		}
	}
	return bounds, append(counts, 0)
}

// edge returns the lower bound of bucket i.
func (e *Exponential) edge(i int) float64 {
	return math.Exp2(math.Ldexp(float64(e.Offset)+float64(i), -int(e.Scale)))
}
