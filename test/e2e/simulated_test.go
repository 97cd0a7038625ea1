// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"maps"
	"os/exec"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// simulator is a process that runs `nixlring simulate`.
type simulator struct{ *proc.Process }

func startSimulator(t *testing.T, dir string, args ...string) simulator {
	t.Helper()
	args = append([]string{"simulate", dir, "--no-consumer", "--output", "json"}, args...)
	return simulator{proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, args...))}
}

// wait waits until the simulator, which runs for at least long, exits. It returns its report.
func (s simulator) wait(t *testing.T, long time.Duration) simulate.Report {
	t.Helper()
	if code := s.WaitWithin(t, 2*long+must.Patience); code != 0 {
		t.Fatalf("the simulator ended with code %d, want 0", code)
	}
	return s.report(t)
}

func (s simulator) report(t *testing.T) (r simulate.Report) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.Stdout.Text()), &r); err != nil {
		t.Fatalf("the simulator's report: %v\n%s", err, s.Stdout.Text())
	}
	return r
}

// nothingDropped ends the test if events didn't reach the rings or were overwritten unread.
func nothingDropped(t *testing.T, r simulate.Report) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.FailNow()
		}
	}()
	for path, a := range r.Agents {
		if a.DroppedStaging+a.DroppedRing+a.Unread > 0 {
			t.Errorf("%s (%s): %d events written; %d dropped in staging, %d dropped at the ring, %d unread at a restart",
				path, a.Layout, a.Written, a.DroppedStaging, a.DroppedRing, a.Unread)
		}
	}
}

// wantReport returns the expected totals for a simulator's report.
func wantReport(t *testing.T, r simulate.Report) otlpfile.Totals {
	t.Helper()
	want := make(otlpfile.Totals)
	for path, a := range r.Agents {
		want[path] = wantAgent(t, &a)
	}
	return want
}

func wantAgent(t *testing.T, a *simulate.Totals) otlpfile.Series {
	t.Helper()
	layout, err := ringbuf.ParseLayout(a.Layout)
	must.OK(t, err)
	series := wantEvents(layout, nil, a.Capacity)
	maps.Copy(series, seriesOf(a.Points))
	series["nixl.telemetry.ring.restarts"] = otlpfile.Value{Int: int64(max(0, a.Starts-1))}
	return series
}
