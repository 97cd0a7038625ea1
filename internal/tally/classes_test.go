// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// compareClasses compares an agent's times by class with those of all its known
// events. It also checks that they are all its times.
func compareClasses(t *testing.T, want *oracle.Oracle, got *tally.Agent, c tally.HistogramConfig) {
	t.Helper()
	durations, posts := want.TimesByClass()
	pending := make(map[string]int)
	for _, e := range want.Unfinished() {
		pending[e.Name]++
	}
	check := func(name string, want map[string][]uint64, list func(func(string, *tally.Histogram) bool), all *tally.Histogram) {
		t.Helper()
		count := uint64(pending[name])
		for class, h := range list {
			values := want[class]
			delete(want, class)
			count += h.Count()
			if len(values) == 0 {
				if h.Count() != 0 {
					t.Errorf("%s %q: %d values, want none", name, class, h.Count())
				}
				continue
			}
			wantOne := oracle.NewDistribution(values, 1e6, oracle.New().DurationBounds)
			if c.Kind == tally.Exponential {
				wantOne.Bounds, wantOne.Counts = nil, nil
				if d := cmp.Diff(sdkHistogram(t, values, 1e6, c.MaxSize), h.Buckets(), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s %q (-SDK +got)\n%s", name, class, d)
				}
			}
			if d := cmp.Diff(wantOne, readDistribution(h), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s %q (-want +got)\n%s", name, class, d)
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: no classes for %v", name, want)
		}
		if count != all.Count() {
			t.Errorf("%s: %d in all classes and pending, %d in all", name, count, all.Count())
		}
	}
	check("agent_xfer_time", durations, got.Durations(), got.Duration())
	check("agent_xfer_post_time", posts, got.PostDurations(), got.PostDuration())
}

var classConfigs = map[string]tally.HistogramConfig{
	"explicit":    {},
	"exponential": {Kind: tally.Exponential, MaxSize: 20},
}

func TestCheckpointRejectsAChangeOfSizeClasses(t *testing.T) {
	with, without := shape(t, tally.Config{SizeClasses: true}), shape(t, tally.Config{})
	for _, c := range []struct{ before, after *tally.Shape }{{with, without}, {without, with}} {
		stored := tally.NewAgent(c.before).AppendTotals(nil)
		if err := tally.NewAgent(c.after).RestoreTotals(stored); err == nil {
			t.Error("totals were restored with other size classes")
		}
	}
}

func TestSnapshotCopiesSizeClasses(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{SizeClasses: true}))
	r := newRing(t, ringbuf.V4, 512)
	g := generator{rand.New(rand.NewPCG(2, 2)), ringbuf.V4}
	want := oracle.New()
	var snapshot *tally.Totals
	for range 3 {
		events := g.events(400)
		r.feed(agent, events)
		for i := range events {
			want.Add(ringbuf.V4, events[i])
		}
		snapshot = agent.Snapshot(snapshot)
		before, _ := want.TimesByClass()
		r.feed(agent, events)
		for class, h := range snapshot.Durations() {
			if h.Count() != uint64(len(before[class])) {
				t.Errorf("%q: %d durations, want %d", class, h.Count(), len(before[class]))
			}
		}
		for i := range events {
			want.Add(ringbuf.V4, events[i])
		}
	}
}
