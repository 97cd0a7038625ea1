// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// found returns the kinds of the findings about a simulated fleet that is watched for some seconds, and
// the agent of the first one.
func found(t *testing.T, scenario string, before, seconds int) (kinds []diagnose.Kind, agent string) {
	t.Helper()
	w := newWorld(t)
	s, err := simulate.FindScenario(scenario)
	must.OK(t, err)
	cfg := simulate.FleetConfig{Dir: w.dir, Prefix: "sim", Agents: 4, Capacity: 1 << 14}
	cfg.Agent = simulate.Config{Traffic: simulate.KVCache(), Seed: 1, Now: func() time.Time { return w.now }}
	s.Set(&cfg)
	fleet, err := simulate.NewFleet(cfg)
	must.OK(t, err)
	must.OK(t, fleet.Start())
	t.Cleanup(func() { must.OK(t, fleet.Stop()) })
	consume := func() {
		for _, a := range fleet.Agents() {
			r, err := ringbuf.OpenReader(a.Path(), ringbuf.Consume)
			must.OK(t, err)
			_, err = r.Read(0, func(ringbuf.Batch) {})
			must.OK(t, err)
			must.OK(t, r.Commit())
			must.OK(t, r.Close())
		}
	}
	for range before {
		for range 10 {
			w.now = w.now.Add(100 * time.Millisecond)
			must.OK(t, fleet.Interval())
		}
		consume()
	}
	take := func() *diagnose.Frame {
		frame, err := w.source.Next(t.Context())
		must.OK(t, err)
		return frame
	}
	frames := []*diagnose.Frame{take()}
	for range seconds {
		for range 10 {
			w.now = w.now.Add(100 * time.Millisecond)
			must.OK(t, fleet.Interval())
			take() // reads the rings
			consume()
		}
		frames = append(frames, take())
	}
	for _, f := range diagnose.Watched(frames, diagnose.Watch(time.Duration(seconds)*time.Second)).Findings {
		if f.Kind == diagnose.EventsTaken {
			continue // the consumer above doesn't keep the lock
		}
		if len(kinds) == 0 && !f.OfJob() {
			agent = f.Agents[0].Name
		}
		if !slices.Contains(kinds, f.Kind) {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds, agent
}

// The default watch of nixlring why must name the cause in each scenario, and nothing else.
func TestTenSecondsNameTheCauseOfAScenario(t *testing.T) {
	for _, tt := range []struct {
		scenario string
		before   int // seconds before the watch
		want     diagnose.Kind
		agent    string // if not all are affected
	}{
		{"steady", 0, "", ""},
		{"straggler", 0, diagnose.Straggler, "sim-3"},
		{"half-speed", 0, diagnose.Straggler, "sim-3"},
		{"stalled", 55, diagnose.Stalled, "sim-3"},
		{"failing-peer", 10, diagnose.Failing, ""},
		{"mixed-sizes", 0, diagnose.SmallBehindLarge, ""},
		{"post-bound", 0, diagnose.PostBound, ""},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			t.Parallel()
			kinds, agent := found(t, tt.scenario, tt.before, 10)
			if tt.want == "" && len(kinds) > 0 || tt.want != "" && (!slices.Equal(kinds, []diagnose.Kind{tt.want}) || tt.agent != "" && agent != tt.agent) {
				t.Errorf("found %v about %q, want %q about %q", kinds, agent, tt.want, tt.agent)
			}
		})
	}
}
