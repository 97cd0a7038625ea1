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

// Later events don't change a snapshot, new or reused.
func TestSnapshotIsIndependentOfTheAgent(t *testing.T) {
	for name, config := range snapshotConfigs {
		for _, l := range ringbuf.Layouts() {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				s := shape(t, config)
				g := generator{rand.New(rand.NewPCG(1, 1)), l}
				r := newRing(t, l, 512)
				agent, other := tally.NewAgent(s), tally.NewAgent(s)
				r.feed(other, g.events(500))
				reused := other.Snapshot(nil)
				for range 5 {
					r.feed(agent, g.events(300))
					want := pointsOf(&agent.Totals)
					fresh := agent.Snapshot(nil)
					reused = agent.Snapshot(reused)
					r.feed(agent, g.events(300))
					agent.Restarted()
					for name, got := range map[string]*tally.Totals{"new": fresh, "reused": reused} {
						if d := cmp.Diff(want, pointsOf(got), cmpopts.EquateEmpty()); d != "" {
							t.Fatalf("%s snapshot (-agent +snapshot)\n%s", name, d)
						}
					}
				}
			})
		}
	}
}

func TestSnapshotEndsTheIntervalOfTheUtilization(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{}))
	agent.Found(3, 9)
	if got := agent.Snapshot(nil).Utilization(); got != 3.0/8 {
		t.Errorf("utilization is %v, want 3/8", got)
	}
	if got := agent.Snapshot(nil).Utilization(); got != 0 {
		t.Errorf("utilization is %v in the next interval, want 0", got)
	}
}

func TestReusedSnapshotDoesNotAllocate(t *testing.T) {
	for name, config := range snapshotConfigs {
		t.Run(name, func(t *testing.T) {
			agent := tally.NewAgent(shape(t, config))
			newRing(t, ringbuf.V1, 512).feed(agent, generator{rand.New(rand.NewPCG(1, 1)), ringbuf.V1}.events(500))
			snapshot := agent.Snapshot(nil)
			if n := testing.AllocsPerRun(10, func() { snapshot = agent.Snapshot(snapshot) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	agent := tally.NewAgent(shape(b, tally.Config{}))
	r := newRing(b, ringbuf.V4, slots)
	r.feed(agent, transferMix(rand.New(rand.NewPCG(1, 2))))
	snapshot := agent.Snapshot(nil)
	b.ReportAllocs()
	for b.Loop() {
		snapshot = agent.Snapshot(snapshot)
	}
}
