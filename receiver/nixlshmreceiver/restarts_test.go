// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The agent is upgraded and has another buffer size. Only its registered memory starts
// at 0.
func TestTotalsContinueWhenTheAgentRestarts(t *testing.T) {
	dir := t.TempDir()
	old := ring(t, dir, "agent", ringbuf.V1, 16)
	push(t, old, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 4096), ringbuf.NewEvent(ringbuf.TypeErrNotFound, 1))
	push(t, old, write(100, 30, 5)...)
	h := newHarness(t, dir, often).start()
	before := h.until(func(all agents) bool { return all["agent"].int(transmitted) == 100 })["agent"]
	if usage := before.int("nixl.memory.usage"); usage != 4096 {
		t.Errorf("memory in use is %d, want 4096", usage)
	}

	restarted := ring(t, dir, "agent", ringbuf.V4, 64)
	h.log("info: ", "agent restarted", restarted.Path())
	push(t, restarted, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1024), ringbuf.NewEvent(ringbuf.TypeErrNotFound, 1))
	push(t, restarted, write(11, 30, 5)...)
	after := h.until(func(all agents) bool { return all["agent"].int(transmitted) == 111 })["agent"]
	got := make(map[string]int64)
	want := map[string]int64{
		"nixl.memory.registered":            5120,
		"nixl.memory.usage":                 1024,
		"nixl.errors{error.type=not_found}": 2,
		"nixl.telemetry.ring.restarts":      1,
		"nixl.telemetry.ring.capacity":      64,
		"nixl.telemetry.ring.torn_groups":   0,
		"nixl.telemetry.ring.foreign_reads": 0,
		"nixl.telemetry.ring.saturations":   0,
		"nixl.events{nixl.event.category=error,nixl.event.name=agent_err_not_found}": 2,
	}
	for point := range want {
		got[point] = after.int(point)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if after.start != before.start || after.time <= before.time {
		t.Errorf("points are from %v to %v, earlier ones from %v to %v", after.start, after.time, before.start, before.time)
	}
	if d := cmp.Diff(before.resource, after.resource); d != "" {
		t.Errorf("resource (-before +after)\n%s", d)
	}
}

// A backend identifies totals by all attributes. If they continued under others, it would
// count them twice.
func TestTotalsStartAtZeroWhenAResourceAttributeChanges(t *testing.T) {
	dir := t.TempDir()
	old := ring(t, dir, "agent", ringbuf.V1, 16)
	push(t, old, write(100, 30, 5)...)
	h := newHarness(t, dir, func(c *Config) { c.ResourceAttributes.NixlTelemetryLayout.Enabled = true }).start()
	before := read(t, h.next())["agent"]
	push(t, old, write(20, 30, 5)...)
	drained(t, old.Path())

	restarted := ring(t, dir, "agent", ringbuf.V4, 64)
	h.log("info: ", "agent restarted", restarted.Path())
	push(t, restarted, write(11, 30, 5)...)
	drained(t, restarted.Path())
	batch := h.next().ResourceMetrics()
	if batch.Len() != 2 {
		t.Fatalf("%d resources, want the one before the restart and the one after it", batch.Len())
	}
	last, next := readAgent(t, batch.At(0)), readAgent(t, batch.At(1))
	if d := cmp.Diff(before.resource, last.resource); d != "" || last.start != before.start || last.int(transmitted) != 120 {
		t.Errorf("the stream ends with %d bytes since %v, want 120 since %v; resource (-before +after)\n%s",
			last.int(transmitted), last.start, before.start, d)
	}
	if next.resource["nixl.telemetry.layout"] != "v4" || next.start < last.time || next.int(transmitted) != 11 {
		t.Errorf("the next stream has layout %s and %d bytes since %v, want v4 and 11 bytes since %v or later",
			next.resource["nixl.telemetry.layout"], next.int(transmitted), next.start, last.time)
	}
	const millisecond = 1e6 // the resolution of Prometheus
	if next.time/millisecond <= last.time/millisecond {
		t.Errorf("both streams have a point at %v", last.time)
	}
	if again := h.next().ResourceMetrics(); again.Len() != 1 {
		t.Errorf("%d resources in the next batch, want one", again.Len())
	}
}

func TestForeignReadsAreReported(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V3, 16)
	push(t, w, write(1, 1, 1)...)
	h := newHarness(t, dir, often).start()
	drained(t, w.Path())
	// A reader that takes no lock, such as NIXL's, stores its own position.
	ringtest.Edit(t, w.Path(), func(h *ringtest.Header) { h.ReadPos, h.WritePos = 6, 6 })
	h.log("warn: ", "another process consumes events of this ring", "mode: observe", "telemetry_reader")
	h.until(func(all agents) bool { return all["agent"].int("nixl.telemetry.ring.foreign_reads") == 1 })
}

func TestFullRingsAreReported(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 16)
	for range 15 {
		push(t, w, ringbuf.NewEvent(ringbuf.TypeTxBytes, 1))
	}
	h := newHarness(t, dir, often).start()
	h.log("warn: ", "ring was full (15 events)", "NIXL_TELEMETRY_BUFFER_SIZE=")
	a := h.until(func(all agents) bool { return all["agent"] != nil })["agent"]
	if a.int("nixl.telemetry.ring.saturations") != 1 || a.points["nixl.telemetry.ring.utilization"] != 1.0 {
		t.Errorf("%d saturations, utilization %v", a.int("nixl.telemetry.ring.saturations"), a.points["nixl.telemetry.ring.utilization"])
	}
	// The fill level is that of the interval, so it falls again.
	h.until(func(all agents) bool { return all["agent"].points["nixl.telemetry.ring.utilization"] == 0.0 })
}
