// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// The Collector takes the events out of the rings. The tools see them in between, and take none.
func TestToolsObserveBesideACollector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(time.Second), otelcol.ExportTo("file")},
		Env:      []string{rings(dir)},
	}.Start(t)
	simulator := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "500", "--error-rate", "0.01", "--seed", "3", "--duration", "4s")
	must.Eventually(t, func() string { // whether agents have problems doesn't matter
		why := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, "why", dir, "--for", "500ms", "-o", "json"))
		why.Wait(t)
		var verdict struct {
			Agents int `json:"agents"`
		}
		must.OK(t, json.Unmarshal([]byte(why.Stdout.Text()), &verdict))
		return cmp.Diff(5, verdict.Agents)
	})
	top := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, "top", dir, "--once", "--window", "500ms", "--output", "json"))
	top.Wait(t)
	var last diagnose.Frame // the second one
	for _, line := range top.Stdout.Lines() {
		last = diagnose.Frame{}
		must.OK(t, json.Unmarshal([]byte(line), &last))
	}
	if len(last.Agents) != 5 {
		t.Errorf("%d agents, want 5", len(last.Agents))
	}
	for _, a := range last.Agents {
		if a.Ring.Consumer == nil || a.Ring.Consumer.Name != filepath.Base(built.Collector) || a.Moved[0].Transfers+a.Moved[1].Transfers == 0 {
			t.Errorf("%s: consumer %+v, transfers %+v", a.ID, a.Ring.Consumer, a.Moved)
		}
	}
	report := simulator.wait(t, 4*time.Second)
	c.AwaitTotals(t, otlpfile.WantReport(t, report))
	c.NoComplaints(t)
}

// Both count all events of agents whose rings they have open.
func TestRecordBesideACollectorMissesNothing(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "agents.jsonl.zst")
	simulator := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "200", "--capacity", "16384", "--duration", "6s")
	record := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, "record", file, dir))
	must.Eventually(t, func() string {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", record.PID()))
		must.OK(t, err)
		return cmp.Diff(5, strings.Count(string(maps), dir+"/sim-"))
	})
	c := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(time.Second), otelcol.ExportTo("file")},
		Env:      []string{rings(dir)},
	}.Start(t)
	report := simulator.wait(t, 6*time.Second)
	c.AwaitTotals(t, otlpfile.WantReport(t, report))
	record.Signal(t, syscall.SIGINT)
	if code := record.Wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := fmt.Sprintf("Recorded %s events of 5 rings (5 starts of agents) in ", units.Count(report.Sum.Written))
	if got := record.Stderr.Text(); !strings.Contains(got, want) || strings.Contains(got, "missing") {
		t.Errorf("want %q:\n%s", want, got)
	}
}
