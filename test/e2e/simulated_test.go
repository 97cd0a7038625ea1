// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
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
		if a.DroppedStaging.Events+a.DroppedRing.Events+a.Unread.Events > 0 {
			t.Errorf("%s (%s): %d events written; %d dropped in staging, %d dropped at the ring, %d unread at a restart",
				path, a.Layout, a.Written.Events.Events, a.DroppedStaging.Events, a.DroppedRing.Events, a.Unread.Events)
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
	written := &a.Written
	layout, err := ringbuf.ParseLayout(a.Layout)
	must.OK(t, err)
	series := wantEvents(layout, nil, a.Capacity)
	count := func(name string, n uint64) {
		series[name] = otlpfile.Value{Int: int64(n)}
	}
	count("nixl.telemetry.ring.restarts", uint64(max(0, a.Starts-1)))
	count("nixl.telemetry.events.dropped", written.ReportedDropped)
	for name, n := range written.Errors {
		count("nixl.errors{error.type="+name+"}", n)
	}
	for _, n := range written.ByName {
		labels := "{nixl.event.category=" + n.Category + ",nixl.event.name=" + oracle.Name(n.Category, n.Name) + "}"
		count("nixl.events"+labels, n.Count+uint64(series["nixl.events"+labels].Int)) // errors have different names in different layouts
		switch n.Category {
		case "connection", "backend", "system", "custom":
			count("nixl.event.value"+labels, n.Sum)
			count("nixl.event.last_value"+labels, n.Last)
		}
		switch n.Name {
		case "agent_memory_registered":
			count("nixl.memory.registered", n.Sum)
			count("nixl.memory.last.size{nixl.memory.operation=register}", n.Last)
		case "agent_memory_deregistered":
			count("nixl.memory.deregistered", n.Sum)
			count("nixl.memory.last.size{nixl.memory.operation=deregister}", n.Last)
		}
	}
	series["nixl.memory.usage"] = otlpfile.Value{Int: int64(written.MemoryRegistered - written.MemoryDeregistered)}
	for direction, d := range map[string]*simulate.Direction{"transmit": &written.Transmit, "receive": &written.Receive} {
		if d.Size.Count == 0 {
			continue
		}
		labels := "{nixl.transfer.direction=" + direction + "}"
		count("nixl.transfer.io"+labels, d.Bytes)
		count("nixl.transfer.requests"+labels, d.Requests)
		count("nixl.transfer.last.size"+labels, d.Size.Last)
		series["nixl.transfer.size"+labels] = distribution(&d.Size, 1)
		if d.Throughput.Count > 0 {
			series["nixl.transfer.throughput"+labels] = distribution(&d.Throughput, 1)
		}
	}
	if written.Duration.Count > 0 {
		series["nixl.transfer.duration"] = distribution(&written.Duration, micros)
		series["nixl.transfer.post.duration"] = distribution(&written.PostDuration, micros)
		series["nixl.transfer.last.duration"] = otlpfile.Value{Float: float64(written.Duration.Last) / micros}
		series["nixl.transfer.last.post_duration"] = otlpfile.Value{Float: float64(written.PostDuration.Last) / micros}
	}
	return series
}

func distribution(d *simulate.Distribution, perUnit float64) otlpfile.Value {
	return otlpfile.Value{
		Count: d.Count, Sum: float64(d.Sum) / perUnit,
		Min: float64(d.Min) / perUnit, Max: float64(d.Max) / perUnit,
		Buckets: d.Buckets,
	}
}
