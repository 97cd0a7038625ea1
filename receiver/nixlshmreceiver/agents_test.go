// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The backend is down for longer than stale_after.
func TestExitedAgentsAreReportedOnceTheBackendIsBack(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	dir := t.TempDir()
	exited := ring(t, dir, "exited", ringbuf.V4, 16)
	push(t, exited, write(7, 1, 1)...)
	must.OK(t, exited.Close())
	other := filepath.Join(dir, "other")
	h := newHarness(t, dir, often, func(c *Config) {
		c.StaleAfter, c.Directories = time.Minute, append(c.Directories, other)
	})
	var ahead atomic.Int64
	h.on.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	down := make(chan struct{})
	h.consume = backend(down)
	h.start()
	drained(t, exited.Path())
	h.log("telemetry directory can't be read", other)
	ahead.Store(int64(time.Hour))
	// Once this directory is found, the agent could have been retired.
	must.OK(t, os.Mkdir(other, 0o700))
	h.log("telemetry directory can be read now", other)
	close(down)
	if got := read(t, h.next())["exited"].int(transmitted); got != 7 {
		t.Errorf("%d bytes transmitted, want 7", got)
	}
	h.log("agent exited and wrote nothing", exited.Path())
}

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

func TestHealthOfARingIsReported(t *testing.T) {
	const restarts, foreign, full, fill = "nixl.telemetry.ring.restarts", "nixl.telemetry.ring.foreign_reads", "nixl.telemetry.ring.saturations",
		"nixl.telemetry.ring.utilization"
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 16)
	push(t, w, write(1, 1, 1)...)
	h := newHarness(t, dir, often).start()
	reports := func(point string, want any) {
		t.Helper()
		h.until(func(all agents) bool { return all["agent"] != nil && all["agent"].points[point] == want })
	}
	drained(t, w.Path())
	// A reader that takes no lock, such as NIXL's, stores its own position.
	ringtest.Edit(t, w.Path(), func(h *ringtest.Header) { h.ReadPos, h.WritePos = 6, 6 })
	h.log("warn: ", "another process consumes events of this ring", "mode: observe", "telemetry_reader")
	reports(foreign, int64(1))
	must.OK(t, h.stop())

	w = ring(t, dir, "agent", ringbuf.V4, 16)
	for range 15 {
		push(t, w, ringbuf.NewEvent(ringbuf.TypeTxBytes, 1))
	}
	h = newHarness(t, dir, often).start()
	h.log("warn: ", "ring was full (15 events)", "NIXL_TELEMETRY_BUFFER_SIZE=")
	reports(fill, 1.0)
	reports(full, int64(1))
	reports(fill, 0.0) // of the interval

	w = ring(t, dir, "agent", ringbuf.V4, 16)
	h.log("info: ", "agent restarted", w.Path())
	push(t, w, write(100, 1, 1)...)
	reports(transmitted, int64(115)) // the totals continue
	reports(restarts, int64(1))
}
