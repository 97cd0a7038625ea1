// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// nixlring runs a command and decodes its output. Whether agents have problems doesn't matter.
func nixlring(t *testing.T, result any, args ...string) {
	t.Helper()
	p := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, args...))
	p.Wait(t)
	if err := json.Unmarshal([]byte(p.Stdout.Text()), result); err != nil {
		t.Fatalf("nixlring %v: %v\n%s", args, err, p.Stdout.Text())
	}
}

// The Collector takes the events out of the rings. The tools see them in between, and take none.
func TestToolsObserveBesideACollector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := setup{
		sample:   "local.yaml",
		overlays: []string{every(time.Second), exportTo("file")},
		env:      []string{rings(dir)},
	}.start(t)
	simulator := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "500", "--error-rate", "0.01", "--seed", "3", "--duration", "4s")
	must.Eventually(t, func() string {
		var verdict struct {
			Agents int `json:"agents"`
		}
		nixlring(t, &verdict, "why", dir, "--for", "500ms", "-o", "json")
		if verdict.Agents != 5 {
			return fmt.Sprintf("%d agents are judged", verdict.Agents)
		}
		return ""
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
	nothingDropped(t, report)
	c.awaitTotals(t, wantReport(t, report))
	c.noComplaints(t)
}
