// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
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
	p := New(w.dir)
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

// The default watch of nixlring why must name the cause in each scenario, and nothing else.
func TestTenSecondsNameTheCauseOfAScenario(t *testing.T) {
	for _, tt := range []struct {
		scenario string
		before   time.Duration
		want     []diagnose.Kind
		who      string // if not all are affected
	}{
		{"steady", 0, nil, ""},
		{"straggler", 0, []diagnose.Kind{diagnose.Straggler}, "worker-3"},
		{"half-speed", 0, []diagnose.Kind{diagnose.Straggler}, "worker-3"},
		{"stalled", 55 * time.Second, []diagnose.Kind{diagnose.Stalled}, "worker-3"},
		{"failing-peer", 10 * time.Second, []diagnose.Kind{diagnose.Failing}, ""},
		{"mixed-sizes", 0, []diagnose.Kind{diagnose.SmallBehindLarge}, ""},
		{"post-bound", 0, []diagnose.Kind{diagnose.PostBound}, ""},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			t.Parallel()
			w := simulated(t, tt.scenario)
			w.run(w.now.Add(tt.before), interval, func() {})
			frames, _ := w.watch(t, 10*time.Second, interval)
			list := diagnose.Watched(frames, diagnose.Watch(10*time.Second)).Findings
			if got := slices.Compact(said(list)); !slices.Equal(got, tt.want) || tt.who != "" && list[0].Agents[0].Name != tt.who {
				t.Errorf("found %v, want %v of %s: %+v", got, tt.want, tt.who, list)
			}
		})
	}
}

// The headline of make demo must name the cause in each scenario. Incidents that begin during a run
// are found within a minute and a half.
func TestHeadlineNamesTheCauseOfAScenario(t *testing.T) {
	for _, tt := range []struct {
		scenario string
		seconds  int
		kind     diagnose.Kind
		agents   int    // 0 if it varies
		who      string // the only agent
	}{
		{"steady", 30, "", 0, ""},
		{"straggler", 20, diagnose.Straggler, 1, "worker-3"},
		{"half-speed", 20, diagnose.Straggler, 1, "worker-3"},
		{"stalled", 60 + 60, diagnose.Stalled, 1, "worker-3"},
		{"stalled", 60 + 230, diagnose.Stalled, 1, "worker-3"},
		{"degrading-link", 60 + 90, diagnose.JobSlower, 6, ""},
		{"post-bound", 20, diagnose.PostBound, 0, ""},
		{"mixed-sizes", 20, diagnose.SmallBehindLarge, 0, ""},
		{"failing-peer", 30, diagnose.Failing, 6, ""},
		{"overflow", 20, diagnose.EventsLost, 0, ""},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			t.Parallel()
			_, page := simulated(t, tt.scenario).watch(t, time.Duration(tt.seconds)*time.Second, interval)
			switch list := page.Findings; {
			case len(list) == 0 && tt.kind != "":
				t.Errorf("nothing found, want %s", tt.kind)
			case len(list) > 0 && (list[0].Kind != tt.kind || tt.agents > 0 && len(list[0].Agents) != tt.agents || tt.who != "" && list[0].Agents[0].Name != tt.who):
				t.Errorf("%s: %s; want %s of %d agents %s", list[0].Kind, list[0].What, tt.kind, tt.agents, tt.who)
			}
		})
	}
}
