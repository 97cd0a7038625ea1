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

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// A recording is made next to a Collector. When it is replayed, another Collector must have the same totals.
//
// The rings are large enough for all events, so nothing is dropped or overwritten even on a busy machine.
func TestReplayedRecordingGivesTheSameTotals(t *testing.T) {
	t.Parallel()
	live, again, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "agents.jsonl.zst")
	agents := startSimulator(t, live, "--layout", "mixed", "--agents", "5", "--transfers", "3000", "--rate", "2000",
		"--capacity", "16384", "--error-rate", "0.01", "--seed", "11")
	agents.WaitFor(t, "Ctrl-C to stop") // the rings exist
	recorder := startRecorder(t, live, file, 5)
	first := drain(t, live)
	report := agents.wait(t, 2*time.Second)
	nothingDropped(t, report)
	recorder.Stop(t, syscall.SIGINT)
	recorder.WaitFor(t, "events of 5 rings (5 starts of agents)")
	want := wantReport(t, report)
	before := first.end(t, want)

	second := drain(t, again)
	if d := cmp.Diff(replayed{Rings: 5, Starts: 5, Written: report.Sum.Written}, replay(t, file, again)); d != "" {
		t.Errorf("replayed (-want +got):\n%s", d)
	}
	after := second.end(t, moveTo(again, want))
	if d := cmp.Diff(moveTo(again, before), after); d != "" {
		t.Errorf("totals (-live +replayed):\n%s", d)
	}
}

// startRecorder records a directory, and returns once all its rings are open. Events that are consumed
// before aren't in the recording.
func startRecorder(t *testing.T, dir, file string, rings int) *proc.Process {
	t.Helper()
	p := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, "record", file, dir))
	must.Eventually(t, func() string {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID()))
		if err != nil {
			return err.Error()
		}
		open := make(map[string]bool)
		for line := range strings.Lines(string(maps)) {
			if at := strings.Index(line, dir+"/"); at >= 0 {
				open[line[at:]] = true
			}
		}
		if len(open) != rings {
			return fmt.Sprintf("the recorder has opened %d rings, want %d", len(open), rings)
		}
		return ""
	})
	return p
}

// drain starts a Collector that drains all rings of a directory.
func drain(t *testing.T, dir string) *collector {
	t.Helper()
	return setup{
		sample:   "local.yaml",
		overlays: []string{every(200 * time.Millisecond), exportTo("file")},
		env:      []string{rings(dir), "PORT=0"},
	}.start(t)
}

// end waits for totals, stops the Collector, and returns its last totals without the series that depend on
// timing.
func (c *collector) end(t *testing.T, want otlpfile.Totals) otlpfile.Totals {
	t.Helper()
	c.awaitTotals(t, want)
	c.Stop(t, syscall.SIGTERM)
	c.noComplaints(t)
	got := c.totals(t)
	mustEqual(t, want, got)
	for _, series := range got {
		delete(series, utilization)
		delete(series, agentUp)
	}
	return got
}

// replayed is the output of nixlring replay.
type replayed struct {
	Rings   int    `json:"rings"`
	Starts  uint64 `json:"starts"`
	Written uint64 `json:"events_written"`
	Dropped uint64 `json:"events_dropped"`
	Missed  uint64 `json:"gaps_in_recording"`
}

// replay replays a recording at twice the speed.
func replay(t *testing.T, file, dir string) (r replayed) {
	t.Helper()
	p := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, "replay", file, dir, "--speed", "2", "--output", "json"))
	if code := p.Wait(t); code != 0 {
		t.Fatalf("the replay ended with code %d, want 0", code)
	}
	if err := json.Unmarshal([]byte(p.Stdout.Text()), &r); err != nil {
		t.Fatalf("output of the replay: %v\n%s", err, p.Stdout.Text())
	}
	return r
}

// moveTo returns the totals of the same agents in another directory.
func moveTo(dir string, totals otlpfile.Totals) otlpfile.Totals {
	moved := make(otlpfile.Totals)
	for path, series := range totals {
		moved[filepath.Join(dir, filepath.Base(path))] = series
	}
	return moved
}
