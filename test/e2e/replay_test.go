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

	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// A recording made beside a Collector, played back, gives another Collector
// what the first one had: the totals of agents of all layouts, to the last
// digit.
//
// The rings hold all that their agents write, so that nothing is dropped or
// written over however long a process has to wait for a processor, live or in
// the replay.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	live, again, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "agents.nixlrec")
	agents := startSimulator(t, live, "--layout", "mixed", "--agents", "5", "--transfers", "3000", "--rate", "2000",
		"--capacity", "16384", "--error-rate", "0.01", "--seed", "11")
	agents.WaitFor(t, "Ctrl-C to stop") // the rings exist
	recorder := startRecorder(t, live, file, 5)
	first := drain(t, live)
	report := agents.wait(t, 2*time.Second)
	nothingDropped(t, report)
	recorder.Stop(t, syscall.SIGINT)
	recorder.WaitFor(t, "events of 5 rings (5 starts of agents)")
	want := wantReport(report)
	before := first.end(t, want)

	second := drain(t, again)
	if d := cmp.Diff(replayed{Rings: 5, Starts: 5, Written: report.Sum.Written.Events.Events}, replay(t, file, again)); d != "" {
		t.Errorf("replayed (-want +got):\n%s", d)
	}
	after := second.end(t, moveTo(again, want))
	if d := cmp.Diff(moveTo(again, before), after); d != "" {
		t.Errorf("totals (-live +replayed):\n%s", d)
	}
}

// startRecorder records a directory, and returns once all rings of it are
// open. What a consumer takes before that isn't in the recording.
func startRecorder(t *testing.T, dir, file string, rings int) *proc.Process {
	t.Helper()
	p := proc.Start(t, exec.CommandContext(t.Context(), nixlringBin, "record", file, dir))
	proc.Eventually(t, func() string {
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

// drain starts a Collector that takes all rings of a directory.
func drain(t *testing.T, dir string) *collector {
	t.Helper()
	return setup{
		sample:   "local.yaml",
		overlays: []string{every(200 * time.Millisecond), exportTo("file")},
		env:      []string{rings(dir), "PORT=0"},
	}.start(t)
}

// end waits for totals, stops the Collector, and returns what it said at last,
// but for what depends on when somebody looks: how full rings were, and whether
// their agents ran.
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

// replayed is what nixlring replay says that it did.
type replayed struct {
	Rings   int    `json:"rings"`
	Starts  uint64 `json:"starts"`
	Written uint64 `json:"events_written"`
	Dropped uint64 `json:"events_dropped"`
	Missed  uint64 `json:"gaps_in_recording"`
}

// replay plays a recording back, faster than it was.
func replay(t *testing.T, file, dir string) (r replayed) {
	t.Helper()
	p := proc.Start(t, exec.CommandContext(t.Context(), nixlringBin, "replay", file, dir, "--speed", "2", "--output", "json"))
	if code := p.Wait(t); code != 0 {
		t.Fatalf("the replay ended with code %d, want 0", code)
	}
	if err := json.Unmarshal([]byte(p.Stdout.Text()), &r); err != nil {
		t.Fatalf("what was replayed: %v\n%s", err, p.Stdout.Text())
	}
	return r
}

// moveTo are the totals of the same agents in another directory.
func moveTo(dir string, totals otlpfile.Totals) otlpfile.Totals {
	moved := make(otlpfile.Totals)
	for path, series := range totals {
		moved[filepath.Join(dir, filepath.Base(path))] = series
	}
	return moved
}
