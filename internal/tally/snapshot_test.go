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

var snapshotConfigs = map[string]tally.Config{
	"explicit":    {},
	"many bounds": {Size: tally.HistogramConfig{Bounds: manyBounds()}},
	"exponential": {Size: tally.HistogramConfig{Kind: tally.Exponential}, Duration: tally.HistogramConfig{Kind: tally.Exponential}},
	"none":        {Duration: tally.HistogramConfig{Kind: tally.NoHistogram}},
}

func manyBounds() (bounds []float64) {
	for i := range 100 {
		bounds = append(bounds, float64(i+1)*1000)
	}
	return bounds
}

// Later events don't change a snapshot.
func TestSnapshotIsIndependentOfTheAgent(t *testing.T) {
	for name, config := range snapshotConfigs {
		for _, l := range ringbuf.Layouts() {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				s := shape(t, config)
				g := generator{rand.New(rand.NewPCG(1, 1)), l}
				r := newRing(t, l, 512)
				agent := tally.NewAgent(s)
				for range 5 {
					r.feed(agent, g.events(300))
					want := pointsOf(&agent.Totals)
					got := agent.Snapshot()
					r.feed(agent, g.events(300))
					agent.Restarted()
					if d := cmp.Diff(want, pointsOf(got), cmpopts.EquateEmpty()); d != "" {
						t.Fatalf("(-agent +snapshot)\n%s", d)
					}
				}
			})
		}
	}
}

func TestSnapshotEndsTheIntervalOfTheUtilization(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{}))
	agent.Found(3, 9)
	if got := agent.Snapshot().Utilization(); got != 3.0/8 {
		t.Errorf("utilization is %v, want 3/8", got)
	}
	if got := agent.Snapshot().Utilization(); got != 0 {
		t.Errorf("utilization is %v in the next interval, want 0", got)
	}
}
