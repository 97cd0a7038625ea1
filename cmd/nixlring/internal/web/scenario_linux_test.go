// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// world is a directory of rings with a clock of its own.
type world struct {
	dir, proc string
	now       time.Time
	work      func(step time.Duration) // lets agents and consumers work
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), proc: t.TempDir(), now: begin}
	must.OK(t, os.Symlink("/proc/locks", filepath.Join(w.proc, "locks"))) // examining all processes would take real time
	return w
}

// run runs the agents until a time, and calls seen after each step.
func (w *world) run(until time.Time, step time.Duration, seen func()) {
	for w.now = w.now.Add(step); !w.now.After(until); w.now = w.now.Add(step) {
		w.work(step)
		seen()
	}
	w.now = until
}

// watch returns what a tool sees that is started now: frames a second apart, and the state of a page.
func (w *world) watch(t *testing.T, length, step time.Duration) (frames []*diagnose.Frame, page *state) {
	t.Helper()
	source, err := fleet.NewRings(fleet.Config{Directory: w.dir, Include: []string{"**"}, Proc: w.proc, Now: func() time.Time { return w.now }})
	must.OK(t, err)
	defer func() { must.OK(t, source.Close()) }()
	p := New(w.dir, Window)
	look := func() {
		frame, err := source.Next(t.Context()) // also reads the rings
		must.OK(t, err)
		if n := len(frames); n == 0 || frame.Time.Sub(frames[n-1].Time) >= time.Second {
			frames = append(frames, frame)
			p.Add(frame, nil)
		}
	}
	look()
	w.run(w.now.Add(length), step, look)
	return frames, p.newState()
}

const interval = 100 * time.Millisecond // of simulated agents

// simulated returns the agents of a scenario, whose rings are drained.
func simulated(t *testing.T, scenario string) *world {
	t.Helper()
	w := newWorld(t)
	s, err := simulate.FindScenario(scenario)
	must.OK(t, err)
	cfg := simulate.FleetConfig{Dir: w.dir, Prefix: "worker", Agents: 6}
	cfg.Agent = simulate.Config{Traffic: simulate.KVCache(), Seed: 1, Now: func() time.Time { return w.now }}
	s.Set(&cfg)
	agents, err := simulate.NewFleet(cfg)
	must.OK(t, err)
	must.OK(t, agents.Start())
	t.Cleanup(func() { must.OK(t, agents.Stop()) })
	var readers []*ringbuf.Reader
	for _, a := range agents.Agents() {
		r, err := ringbuf.OpenReader(a.Path(), ringbuf.Consume)
		must.OK(t, err)
		t.Cleanup(func() { must.OK(t, r.Close()) })
		readers = append(readers, r)
	}
	w.work = func(time.Duration) {
		for _, r := range readers { // first, so that tools see what is written
			_, err := r.Read(0, func(ringbuf.Batch) {})
			must.OK(t, err)
			must.OK(t, r.Commit())
		}
		must.OK(t, agents.Interval())
	}
	return w
}

// The headline of make demo, and then a watch of nixlring why for ten seconds, must name the cause in each scenario, and
// nothing else. Incidents that begin during a run are found within a minute and a half.
func TestCauseOfAScenarioIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	straggler, stalled := []diagnose.Kind{diagnose.Straggler}, []diagnose.Kind{diagnose.Stalled}
	for _, tt := range []struct {
		scenario  string
		seconds   int
		page, why []diagnose.Kind // the worst finding of the page, and all of why
		agents    string          // of the worst finding
	}{
		{"steady", 30, nil, nil, ""},
		{"straggler", 20, straggler, straggler, "worker-3"},
		{"half-speed", 20, straggler, straggler, "worker-3"},
		{"stalled", 60 + 60, stalled, stalled, "worker-3"},
		{"stalled", 60 + 230, stalled, stalled, "worker-3"},
		{"degrading-link", 60 + 90, []diagnose.Kind{diagnose.JobSlower}, nil, "6"},
		{"post-bound", 20, []diagnose.Kind{diagnose.PostBound}, []diagnose.Kind{diagnose.PostBound}, "worker-0"},
		{"failing-peer", 30, []diagnose.Kind{diagnose.Failing}, []diagnose.Kind{diagnose.Failing}, "6"},
		{"overflow", 20, []diagnose.Kind{diagnose.EventsLost}, []diagnose.Kind{diagnose.EventsLost}, "worker-0"},
	} {
		t.Run(fmt.Sprint(tt.scenario, tt.seconds), func(t *testing.T) {
			t.Parallel()
			w := simulated(t, tt.scenario)
			_, page := w.watch(t, time.Duration(tt.seconds)*time.Second, interval)
			worst, agents := page.Findings[:min(1, len(page.Findings))], ""
			for _, f := range worst {
				if agents = f.Agents[0].Name; len(f.Agents) > 1 {
					agents = fmt.Sprint(len(f.Agents))
				}
			}
			if diff := cmp.Diff(tt.page, said(worst)) + cmp.Diff(tt.agents, agents); diff != "" {
				t.Errorf("page: %s%+v", diff, page.Findings)
			}
			frames, _ := w.watch(t, 10*time.Second, interval)
			list := diagnose.Watched(frames, diagnose.Watch(10*time.Second)).Findings
			if diff := cmp.Diff(tt.why, slices.Compact(said(list))); diff != "" {
				t.Errorf("why: %s%+v", diff, list)
			}
		})
	}
}
