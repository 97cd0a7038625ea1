// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

const (
	sigterm = syscall.SIGTERM
	sigcont = syscall.SIGCONT
)

// fleet configures a process with several agents.
type fleet struct {
	name string
	args []string
}

var (
	// Small rings are full whenever no Collector runs; large rings never are.
	small = fleet{"small", []string{"--capacity", "256", "--rate", "300", "--run-interval", "10ms"}}
	large = fleet{"large", []string{"--capacity", "8192", "--rate", "500", "--run-interval", "20ms"}}
)

// The Collector is killed repeatedly while agents of all layouts write. The final totals equal the
// written events, including every bucket.
func TestKillsOfTheCollectorLoseNothing(t *testing.T) {
	t.Parallel()
	testKills(t, false, small, large)
}

// With fsync, saves take longer, so more kills interrupt them. The rings are large enough to wait
// for a slow disk.
func TestKillsOfTheCollectorWithFsyncLoseNothing(t *testing.T) {
	t.Parallel()
	testKills(t, true, large)
}

func testKills(t *testing.T, fsync bool, fleets ...fleet) {
	t.Helper()
	rng, seed := chance(t)
	kills := int(number(t, "CHAOS_KILLS", 10))
	rings := t.TempDir()
	k := newKiller(t, rng, rings, filepath.Join(t.TempDir(), "state"), fsync)
	var simulators []*proc.Process
	for _, f := range fleets {
		simulators = append(simulators, f.start(t, rings, seed))
	}
	for k.kills < kills {
		k.round(t)
	}
	want := make(map[string]ledger.Series)
	for _, s := range simulators {
		maps.Copy(want, stop(t, s))
	}
	k.last(t, func() string { return undrained(t, rings) })

	t.Logf("%d kills; %s", k.kills, k.excused())
	got := k.to.Totals()
	for path, series := range want {
		k.compare(t, path, series, got[path])
	}
	if len(got) != len(want) {
		t.Errorf("%d agents, want %d", len(got), len(want))
	}
	k.check(t)
}

// mustBe fails the test if the series of an agent differ from those of its events.
func mustBe(t *testing.T, path string, want, got ledger.Series) {
	t.Helper()
	want["nixl.telemetry.ring.restarts"], want["nixl.telemetry.ring.foreign_reads"] = 0, 0
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %s is %d, want %d", filepath.Base(path), name, got[name], n)
		}
	}
}

// start runs five agents, one of each layout.
func (f fleet) start(t *testing.T, rings string, seed uint64) *proc.Process {
	t.Helper()
	args := append([]string{
		"simulate", rings, "--no-consumer", "--output", "json", "--layout", "mixed", "--agents", "5",
		"--name", f.name, "--error-rate", "0.02", "--seed", fmt.Sprint(seed + 1),
	}, f.args...)
	return proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, args...))
}

// stop stops a fleet, and returns the series of its agents' events.
func stop(t *testing.T, agents *proc.Process) map[string]ledger.Series {
	t.Helper()
	agents.Stop(t, sigterm)
	var r simulate.Report
	must.OK(t, json.Unmarshal([]byte(agents.Stdout.Text()), &r))
	want := make(map[string]ledger.Series)
	for path, a := range r.Agents {
		want[path] = wantAgent(a.Points)
	}
	t.Logf("%d agents wrote %d events and dropped %d",
		len(want), r.Sum.Written, r.Sum.DroppedRing+r.Sum.DroppedStaging)
	return want
}

// undrained returns a message if a ring still holds events.
func undrained(t *testing.T, rings string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rings, "*"))
	must.OK(t, err)
	for _, path := range paths {
		if h := ringtest.ReadHeader(t, path); !h.Drained() {
			return path + " holds events"
		}
	}
	return ""
}

// wantAgent returns the series of a simulated agent's events: counters, and histograms of sizes and
// durations.
func wantAgent(points oracle.Points) ledger.Series {
	series := make(ledger.Series)
	for name, v := range points {
		switch v := v.(type) {
		case int64:
			if name != "nixl.memory.usage" && !strings.Contains(name, ".last") {
				series[name] = uint64(v)
			}
		case oracle.Distribution:
			if strings.Contains(name, "throughput") {
				continue
			}
			unit := 1.0
			if strings.Contains(name, "duration") {
				unit = 1e6
			}
			series[name+ledger.Count], series[name+ledger.Sum] = v.Count, uint64(math.Round(v.Sum*unit))
			for i, n := range v.Counts {
				series[name+ledger.Bucket(i)] = n
			}
		}
	}
	return series
}
