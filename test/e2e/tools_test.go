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
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// The Collector takes the events out of the rings. The tools see them as well, and take none.
func TestToolsMissNothingBesideACollector(t *testing.T) {
	t.Parallel()
	const long = 4 * time.Second
	dir := t.TempDir()
	simulator := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "300", "--error-rate", "0.01",
		"--duration", long.String())
	args := []string{"read", "--follow", "--category", "error", "--output", "json"}
	for i := range 5 {
		path := filepath.Join(dir, fmt.Sprintf("sim-%d", i))
		args = append(args, path)
		must.EventuallyTrue(t, "ring", func() bool {
			_, err := os.Stat(path)
			return err == nil
		})
	}
	read := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, args...))
	must.Eventually(t, func() string {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", read.PID()))
		must.OK(t, err)
		return cmp.Diff(5, strings.Count(string(maps), dir+"/sim-"))
	})
	c := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(time.Second), otelcol.ExportTo("file")},
		Env:      []string{rings(dir)},
	}.Start(t)
	must.Eventually(t, func() string {
		top := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, "top", dir, "--window", "300ms", "--output", "json"))
		top.Wait(t)
		var last diagnose.Frame // the second one
		for _, line := range top.Stdout.Lines() {
			last = diagnose.Frame{}
			must.OK(t, json.Unmarshal([]byte(line), &last))
		}
		consumers := make(map[string]int) // of agents with transfers
		for _, a := range last.Agents {
			if a.Ring.Consumer != nil && a.Moved[0].Transfers+a.Moved[1].Transfers > 0 {
				consumers[a.Ring.Consumer.Name]++
			}
		}
		return cmp.Diff(map[string]int{filepath.Base(built.Collector): 5}, consumers)
	})
	report := simulator.wait(t, long)
	c.AwaitTotals(t, otlpfile.WantReport(t, report))
	c.NoComplaints(t)
	read.Stop(t, syscall.SIGINT)
	want := fmt.Sprintf("Total events read: %d (", report.Sum.Written)
	if got := read.Stderr.Text(); !strings.Contains(got, want) || strings.Contains(got, "missed") {
		t.Errorf("want %q:\n%s", want, got)
	}
}

// simulator is a process that runs `nixlring simulate`.
type simulator struct{ *proc.Process }

func startSimulator(t *testing.T, dir string, args ...string) simulator {
	t.Helper()
	args = append([]string{"simulate", dir, "--no-consumer", "--output", "json"}, args...)
	cmd := exec.CommandContext(t.Context(), built.Nixlring, args...)
	cmd.Env = append(os.Environ(), process.EnvBufferSize+"=16384") // for readers that are late
	return simulator{proc.Start(t, cmd)}
}

// wait waits until the simulator, which runs for at least long, exits. It returns its report. It ends
// the test if events didn't reach the rings or were overwritten unread.
func (s simulator) wait(t *testing.T, long time.Duration) (r simulate.Report) {
	t.Helper()
	if code := s.WaitWithin(t, 2*long+must.Patience); code != 0 {
		t.Fatalf("the simulator ended with code %d, want 0", code)
	}
	if err := json.Unmarshal([]byte(s.Stdout.Text()), &r); err != nil {
		t.Fatalf("the simulator's report: %v\n%s", err, s.Stdout.Text())
	}
	for path, a := range r.Agents {
		if a.DroppedStaging+a.DroppedRing+a.Unread > 0 {
			t.Fatalf("%s (%s): %d events written; %d dropped in staging, %d dropped at the ring, %d unread at a restart",
				path, a.Layout, a.Written, a.DroppedStaging, a.DroppedRing, a.Unread)
		}
	}
	return r
}
