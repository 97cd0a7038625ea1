// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestNewShapeNamesEveryInvalidField(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		want   []string // parts of the error
	}{
		{"the default", Config{}, nil},
		{"kind", Config{Duration: HistogramConfig{Kind: "linear"}}, []string{"duration: kind", `"linear"`, "explicit, exponential or none"}},
		{"descending", Config{Size: HistogramConfig{Bounds: []float64{2, 1}}}, []string{"size: bounds", "bound 2 is 1"}},
		{"equal", Config{Size: HistogramConfig{Bounds: []float64{1, 1}}}, []string{"size: bounds", "bound 2 is 1"}},
		{"negative", Config{Duration: HistogramConfig{Bounds: []float64{-1, 1}}}, []string{"duration: bounds", "bound 1 is -1"}},
		{"not a number", Config{Duration: HistogramConfig{Bounds: []float64{math.NaN()}}}, []string{"duration: bounds", "NaN"}},
		{"infinite", Config{Duration: HistogramConfig{Bounds: []float64{math.Inf(1)}}}, []string{"duration: bounds", "Inf"}},
		{"too many", Config{Size: HistogramConfig{Bounds: make([]float64, 256)}}, []string{"size: bounds", "256", "at most 255"}},
		{
			"all at once",
			Config{Duration: HistogramConfig{Kind: "x"}, Size: HistogramConfig{Kind: "y"}, Throughput: HistogramConfig{Bounds: []float64{2, 1}}},
			[]string{"duration: kind", "size: kind", "throughput: bounds"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := NewShape(tt.config)
			if (err == nil) != (tt.want == nil) || (s == nil) != (tt.want != nil) {
				t.Fatalf("shape %v, error %v", s, err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q doesn't contain %q", err, part)
				}
			}
		})
	}
}

func TestShapeCopiesTheCallersBounds(t *testing.T) {
	bounds := []float64{10, 20}
	agent := NewAgent(shapeOf(t, Config{Size: HistogramConfig{Bounds: bounds}}))
	bounds[0] = 15
	feed(t, agent, ringbuf.V4, sizesOf(12))
	h := agent.Size(Receive)
	if !slices.Equal(h.Bounds(), []float64{10, 20}) || !slices.Equal(h.Counts(), []uint64{0, 1, 0}) {
		t.Errorf("bounds %v, counts %v", h.Bounds(), h.Counts())
	}
}

// A search for a bucket would cost more than all else.
func TestBucketsOfTheCatalogNeedNoSearch(t *testing.T) {
	s := shapeOf(t, Config{})
	for name, scale := range map[string]*scale{"duration": s.duration, "size": s.size} {
		if scale.quick != 1<<quickBits-1 {
			t.Errorf("%s: quick up to %d", name, scale.quick)
		}
	}
	if len(s.throughput.fine) != quickBits<<fineBits {
		t.Errorf("throughput: %d cells", len(s.throughput.fine))
	}
}

func TestImportedShapeHasHistogramsOnlyWithBounds(t *testing.T) {
	bounds := []float64{1000, 2000}
	for _, tt := range []struct {
		bounds     []float64
		histograms bool
		want       []float64
	}{{bounds, true, []float64{0.001, 0.002}}, {bounds, false, nil}, {nil, true, nil}} {
		s, err := ImportShape(tt.bounds, tt.histograms)
		must.OK(t, err)
		if got := NewAgent(s).Duration(); !slices.Equal(got.Bounds(), tt.want) || (got.Kind() == Explicit) != (tt.want != nil) {
			t.Errorf("%v, %v: %s %v, want %v", tt.bounds, tt.histograms, got.Kind(), got.Bounds(), tt.want)
		}
	}
}
