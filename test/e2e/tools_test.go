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
	var list []struct {
		Path      string `json:"path"`
		Reader    string `json:"reader"`
		Transfers uint64 `json:"transfers"`
	}
	nixlring(t, &list, "top", dir, "--once", "--window", "500ms", "--output", "json")
	for _, a := range list {
		if a.Reader != filepath.Base(built.Collector) || a.Transfers == 0 {
			t.Errorf("%+v", a)
		}
	}
	report := simulator.wait(t, 4*time.Second)
	nothingDropped(t, report)
	c.awaitTotals(t, wantReport(t, report))
	c.noComplaints(t)
}
