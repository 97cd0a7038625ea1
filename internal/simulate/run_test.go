// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRunEndsAfterTheDuration(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fleet, err := simulate.NewFleet(simulate.FleetConfig{
			Dir: dir, Agents: 3, Layouts: ringbuf.Layouts(), Capacity: 8192,
			Agent: simulate.Config{Rate: 50, Duration: 10 * time.Second, RestartEvery: 4 * time.Second, Seed: 11},
		})
		must.OK(t, err)
		start := time.Now()
		must.OK(t, fleet.Run(t.Context()))
		// Each of the two restarts takes an interval, and the last agent starts two thirds of an interval later.
		if took := time.Since(start); took < 10200*time.Millisecond || took > 10400*time.Millisecond {
			t.Errorf("10 s took %v", took)
		}
		if !fleet.Done() {
			t.Error("the fleet isn't done")
		}
		report := fleet.Report()
		for path, totals := range report.Agents {
			if totals.Operations != 500 || totals.Starts != 3 {
				t.Errorf("%s: %d operations and %d lives in 10 s at 50/s", path, totals.Operations, totals.Starts)
			}
		}
		if report.Sum.Operations != 1500 || report.Sum.Layout != "mixed" || len(report.Agents) != 3 {
			t.Errorf("sum of %d agents: %d operations, layout %s", len(report.Agents), report.Sum.Operations, report.Sum.Layout)
		}
	})
}

func TestCanceledRunFlushesUnlessConfiguredOtherwise(t *testing.T) {
	for _, noFinalFlush := range []bool{false, true} {
		path := ringPath(t)
		synctest.Test(t, func(t *testing.T) {
			a := mustNew(t, simulate.Config{Path: path, Rate: 100, Seed: 12, NoFinalFlush: noFinalFlush})
			ctx, cancel := context.WithTimeout(t.Context(), 1050*time.Millisecond)
			defer cancel()
			must.OK(t, a.Run(ctx, 0))
			c := newConsumer(t, path)
			c.drain()
			totals := a.Totals()
			c.same(a)
			if totals.Operations != 105 {
				t.Errorf("%d operations in 1.05 s at 100/s", totals.Operations)
			}
			if discarded := totals.Discarded > 0; discarded != noFinalFlush {
				t.Errorf("without a final flush: %v; %d events discarded", noFinalFlush, totals.Discarded)
			}
		})
	}
}

// Even if the agent is late, a reader has a full interval for each flush.
func TestRunFlushesOncePerInterval(t *testing.T) {
	path := ringPath(t)
	synctest.Test(t, func(t *testing.T) {
		var skew atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
		a := mustNew(t, simulate.Config{Path: path, Rate: 10_000, Seed: 13, Now: now})
		must.OK(t, a.Start())
		c := newConsumer(t, path)
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- a.Run(ctx, 0) }()
		for i := range 30 {
			if i == 5 {
				skew.Store(int64(200 * time.Millisecond)) // as if the machine had been suspended
			}
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
			if flushes := a.Totals().Flushes; flushes != uint64(i+1) {
				t.Fatalf("%d flushes after %d intervals", flushes, i+1)
			}
			c.drain()
		}
		cancel()
		must.OK(t, <-done)
		c.drain()
		totals := a.Totals()
		c.same(a)
		if totals.Dropped() != 0 {
			t.Errorf("%d events dropped", totals.Dropped())
		}
		// Up to 1,023 operations fit in a flush, so 23 of each flush catch up.
		if totals.Operations < 30_500 || totals.Operations > 30_700 {
			t.Errorf("%d operations", totals.Operations)
		}
	})
}

func TestFleetNumbersItsAgentsAndRemovesTheirRings(t *testing.T) {
	dir := t.TempDir()
	fleet, err := simulate.NewFleet(simulate.FleetConfig{Dir: dir, Prefix: "decode", Agents: 2})
	must.OK(t, err)
	must.OK(t, fleet.Start())
	var names []string
	for _, a := range fleet.Agents() {
		names = append(names, a.Path())
	}
	want := []string{filepath.Join(dir, "decode-0"), filepath.Join(dir, "decode-1")}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	must.OK(t, fleet.Interval())
	must.OK(t, fleet.Stop())
	must.OK(t, fleet.Remove())
	left, err := os.ReadDir(dir)
	must.OK(t, err)
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFleetStopsItsAgentsIfOneCannotStart(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "sim-1"), 0o755))
	fleet, err := simulate.NewFleet(simulate.FleetConfig{Dir: dir, Agents: 2})
	must.OK(t, err)
	if err := fleet.Start(); err == nil {
		t.Error("an agent started although its ring is a directory")
	}
	if !fleet.Agents()[0].Done() {
		t.Error("the first agent still runs")
	}
}

// Users' tests and scripts depend on the field names.
func TestFieldNamesOfTheReportAreStable(t *testing.T) {
	dir := t.TempDir()
	fleet, err := simulate.NewFleet(simulate.FleetConfig{Dir: dir, Agents: 1, Journals: true, Agent: simulate.Config{Rate: 100, Seed: 14}})
	must.OK(t, err)
	must.OK(t, fleet.Interval())
	must.OK(t, fleet.Interval())
	must.OK(t, fleet.Stop())
	text, err := json.Marshal(fleet.Report())
	must.OK(t, err)
	var report struct {
		Seed   uint64
		Agents map[string]map[string]json.RawMessage
		Sum    map[string]json.RawMessage
	}
	must.OK(t, json.Unmarshal(text, &report))
	want := []string{
		"layout", "capacity", "starts", "flushes", "operations", "failed",
		"written", "dropped_staging", "dropped_ring", "discarded", "unread_at_restart", "pending_at_end",
	}
	hasFields(t, report.Sum, want)
	hasFields(t, report.Agents[filepath.Join(dir, "sim-0")], append(want, "points"))
	var back simulate.Report
	must.OK(t, json.Unmarshal(text, &back))
	if diff := cmp.Diff(fleet.Report(), back); diff != "" {
		t.Errorf("the decoded report differs: %s", diff)
	}
}

func hasFields(t *testing.T, got map[string]json.RawMessage, want []string) {
	t.Helper()
	for _, name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("no field %s", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d fields, want %d", len(got), len(want))
	}
}

func TestEveryScenarioIsExactAndRepeatable(t *testing.T) {
	for _, s := range simulate.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			written := func(dir string, read bool) map[string]oracle.Points {
				cfg := simulate.FleetConfig{Dir: dir, Agents: 2, Journals: true, Layouts: ringbuf.Layouts()}
				cfg.Agent = simulate.Config{Traffic: withErrors(), Duration: 3 * time.Second, Seed: 5, Now: newClock().Now}
				s.Set(&cfg)
				f, err := simulate.NewFleet(cfg)
				must.OK(t, err)
				must.OK(t, f.Start())
				var consumers []*consumer
				for _, a := range f.Agents() {
					consumers = append(consumers, newConsumer(t, a.Path()))
				}
				for !f.Done() {
					must.OK(t, f.Interval())
					for _, c := range consumers {
						c.drain()
					}
				}
				must.OK(t, f.Stop())
				all := map[string]oracle.Points{}
				for i, a := range f.Agents() {
					all[filepath.Base(a.Path())] = a.Totals().Points
					if read {
						consumers[i].drainAll()
						consumers[i].same(a)
					}
				}
				return all
			}
			if diff := cmp.Diff(written(t.TempDir(), true), written(t.TempDir(), false)); diff != "" {
				t.Errorf("the same seed gives different transfers: %s", diff)
			}
		})
	}
}
