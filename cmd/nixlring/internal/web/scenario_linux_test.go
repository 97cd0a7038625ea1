// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// verdict runs a scenario for some seconds of a clock of its own, and returns the first finding, which is
// the headline, or nil.
func verdict(t *testing.T, scenario string, seconds int) *finding {
	t.Helper()
	dir, now := t.TempDir(), begin
	s, err := simulate.FindScenario(scenario)
	must.OK(t, err)
	cfg := simulate.FleetConfig{Dir: dir, Prefix: "worker", Agents: 6}
	cfg.Agent = simulate.Config{Traffic: simulate.KVCache(), Seed: 1, Now: func() time.Time { return now }}
	s.Set(&cfg)
	agents, err := simulate.NewFleet(cfg)
	must.OK(t, err)
	must.OK(t, agents.Start())
	defer func() { must.OK(t, agents.Stop()) }()
	var readers []*ringbuf.Reader
	for _, a := range agents.Agents() {
		r, err := ringbuf.OpenReader(a.Path(), ringbuf.Consume)
		must.OK(t, err)
		defer func() { must.OK(t, r.Close()) }()
		readers = append(readers, r)
	}
	proc := t.TempDir() // examining all processes would take real time
	must.OK(t, os.Symlink("/proc/locks", filepath.Join(proc, "locks")))
	source, err := fleet.NewRings(fleet.Config{Directory: dir, Proc: proc, Now: func() time.Time { return now }})
	must.OK(t, err)
	defer func() { must.OK(t, source.Close()) }()
	p := New(dir)
	const step = 100 * time.Millisecond
	for at := time.Duration(0); at <= time.Duration(seconds)*time.Second; at += step {
		now = begin.Add(at)
		must.OK(t, agents.Interval())
		frame, err := source.Next(t.Context()) // also reads the rings
		must.OK(t, err)
		for _, r := range readers {
			_, err := r.Read(0, func(ringbuf.Batch) {})
			must.OK(t, err)
			must.OK(t, r.Commit())
		}
		if at%Interval == 0 {
			p.Add(frame, nil)
		}
	}
	list := p.newState().Findings
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// The headline of make demo must name the cause in each scenario. Incidents that begin during a run
// are found within a minute and a half.
func TestHeadlineNamesTheCauseOfAScenario(t *testing.T) {
	for _, tt := range []struct {
		scenario string
		seconds  int
		kind     diagnose.Kind
		who      string // empty if several agents have the finding
	}{
		{"steady", 30, "", ""},
		{"straggler", 20, diagnose.Straggler, "worker-3"},
		{"half-speed", 20, diagnose.Straggler, "worker-3"},
		{"stalled", 60 + 60, diagnose.Stalled, "worker-3"},
		{"stalled", 60 + 230, diagnose.Stalled, "worker-3"},
		{"degrading-link", 60 + 90, diagnose.JobSlower, "6 agents"},
		{"post-bound", 20, diagnose.PostBound, ""},
		{"mixed-sizes", 20, diagnose.SmallBehindLarge, ""},
		{"failing-peer", 30, diagnose.Failing, "6 agents"},
		{"overflow", 20, diagnose.EventsLost, ""},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			t.Parallel()
			f := verdict(t, tt.scenario, tt.seconds)
			switch {
			case f == nil && tt.kind != "":
				t.Errorf("nothing found, want %s", tt.kind)
			case f != nil && (f.Kind != tt.kind || tt.who != "" && string(f.Who) != tt.who):
				t.Errorf("%s of %s: %s; want %s of %s", f.Kind, f.Who, f.What, tt.kind, tt.who)
			}
		})
	}
}
