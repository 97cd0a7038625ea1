// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Only the first event of a name allocates.
func TestAddDoesNotAllocate(t *testing.T) {
	configs := map[string]tally.Config{
		"explicit": {},
		"exponential": {
			Duration: tally.HistogramConfig{Kind: tally.Exponential},
			Size:     tally.HistogramConfig{Kind: tally.Exponential, MaxSize: 5},
		},
		"none": {Duration: tally.HistogramConfig{Kind: tally.NoHistogram}, Size: tally.HistogramConfig{Kind: tally.NoHistogram}},
		"many": {Size: tally.HistogramConfig{Bounds: []float64{1, 2, 3, 5, 6, 7, 8, 9, 10, 100}}},
	}
	for name, config := range configs {
		for _, l := range ringbuf.Layouts() {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				events := generator{rand.New(rand.NewPCG(1, 9)), l}.events(slots - 1)
				agent := tally.NewAgent(shape(t, config))
				r := newRing(t, l, slots)
				r.push(events)
				r.read(func(b ringbuf.Batch) {
					agent.Add(b)
					if n := testing.AllocsPerRun(10, func() { agent.Add(b) }); n != 0 {
						t.Errorf("%v allocations", n)
					}
				})
			})
		}
	}
}
