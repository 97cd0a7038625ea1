// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// withTelemetry returns the receiver's own telemetry.
func (h *harness) withTelemetry() *componenttest.Telemetry {
	telemetry := componenttest.NewTelemetry()
	h.tb.Cleanup(func() { _ = telemetry.Shutdown(h.tb.Context()) })
	h.settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	h.settings.Logger = zap.New(h.lines)
	return telemetry
}

const own = "otelcol_receiver_nixl_shm_"

// sums returns the points of one of the receiver's own sums by the values of their
// attributes, such as refused/locked.
func sums(tb testing.TB, from *componenttest.Telemetry, name string) map[string]int64 {
	tb.Helper()
	points := make(map[string]int64)
	m, err := from.GetMetric(own + name)
	if err != nil {
		return points // nothing has been recorded yet
	}
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints { //nolint:errcheck // or the test panics
		var values []string
		for _, key := range []attribute.Key{"state", "reason", "layout", "source", "cause"} {
			if v, ok := dp.Attributes.Value(key); ok {
				values = append(values, v.AsString())
			}
		}
		points[strings.Join(values, "/")] = dp.Value
	}
	return points
}

// recorded returns the count and the sum of one of the receiver's own histograms.
func recorded(tb testing.TB, from *componenttest.Telemetry, name string) (count uint64, sum float64) {
	tb.Helper()
	m, err := from.GetMetric(own + name)
	if err != nil {
		return 0, 0
	}
	for _, dp := range m.Data.(metricdata.Histogram[float64]).DataPoints { //nolint:errcheck // or the test panics
		count += dp.Count
		sum += dp.Sum
	}
	return count, sum
}

func TestTelemetryCountsRingsByStateAndReason(t *testing.T) {
	dir := t.TempDir()
	running, exited := ring(t, dir, "running", ringbuf.V4, 16), ring(t, dir, "exited", ringbuf.V1, 16)
	push(t, running, write(1, 1, 1)...)
	push(t, exited, write(1, 1, 1)...)
	must.OK(t, exited.Close())
	ringtest.Make(t, filepath.Join(dir, "newer"), ringtest.NewHeader(99, 16), 1024)
	broken := ring(t, dir, "broken", ringbuf.V4, 16)
	must.OK(t, os.Truncate(broken.Path(), 100))
	taken := ring(t, dir, "taken", ringbuf.V4, 16)
	other, err := ringbuf.OpenReader(taken.Path(), ringbuf.Consume)
	must.OK(t, err)
	defer other.Close()

	h := newHarness(t, dir)
	telemetry := h.withTelemetry()
	h.start()
	want := map[string]int64{"open": 1, "stale": 1, "refused/version": 1, "refused/invalid": 1, "refused/locked": 1}
	var got map[string]int64
	must.EventuallyTrue(t, "rings in the receiver's telemetry", func() bool {
		h.next()
		got = sums(t, telemetry, "rings")
		return len(got) == len(want) && got["stale"] == 1
	})
	for point, n := range want {
		if got[point] != n {
			t.Errorf("rings are %v, want %v", got, want)
			break
		}
	}
	if agents := sums(t, telemetry, "agents"); len(agents) != 2 || agents["v1"] != 1 || agents["v4"] != 1 {
		t.Errorf("agents are %v, want one of v1 and one of v4", agents)
	}
	h.shutdown()
	if got := sums(t, telemetry, "rings"); len(got) != 0 {
		t.Errorf("rings after the shutdown: %v", got)
	}
}

func TestTelemetryCountsRefusedRingsBeforeTheNextCollection(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "agent", ringbuf.V4, 16), write(1, 1, 1)...)
	h := newHarness(t, dir)
	telemetry := h.withTelemetry()
	h.start()
	h.next()
	if got := sums(t, telemetry, "rings"); got["open"] != 1 || len(got) != 2 {
		t.Errorf("rings are %v, want one that is open", got)
	}
	ringtest.Make(t, filepath.Join(dir, "newer"), ringtest.NewHeader(99, 16), 1024)
	h.log("ring can't be opened", "newer")
	if got := sums(t, telemetry, "rings"); got["refused/version"] != 1 {
		t.Errorf("rings are %v, want one that is refused for its version", got)
	}
}

func TestTelemetryMeasuresDrains(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h := newHarness(t, dir)
	telemetry := h.withTelemetry()
	h.start()
	for range 5 {
		push(t, w, write(1, 1, 1)...)
		drained(t, w.Path())
	}
	h.next()
	if got := sums(t, telemetry, "drain_events")[""]; got != 20 {
		t.Errorf("%d events were drained, want 20", got)
	}
	must.EventuallyTrue(t, "lag of a drain", func() bool { n, _ := recorded(t, telemetry, "drain_lag"); return n > 0 })
	if n, sum := recorded(t, telemetry, "drain_lag"); sum < 0 || sum > patience.Seconds()*float64(n) {
		t.Errorf("%d drains have a lag of %v s", n, sum)
	}
}

func TestTelemetryCountsFailedCheckpoints(t *testing.T) {
	t.Parallel() // it waits for a second
	dir, store := t.TempDir(), newMemory()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h := newHarness(t, dir, func(c *Config) { c.StorageID = &memoryID })
	h.extensions = map[component.ID]component.Component{memoryID: store}
	telemetry := h.withTelemetry()
	h.start()
	push(t, w, write(1, 1, 1)...)
	drained(t, w.Path())
	stored, _ := recorded(t, telemetry, "checkpoint_duration")
	if failures := sums(t, telemetry, "checkpoint_failures"); stored == 0 || len(failures) != 1 || failures[""] != 0 {
		t.Errorf("%d batches stored, failures are %v; want some, and 0", stored, failures)
	}
	store.fail(true)
	push(t, w, write(1, 1, 1)...)
	must.EventuallyTrue(t, "failure in the receiver's telemetry", func() bool {
		h.next()
		return sums(t, telemetry, "checkpoint_failures")[""] > 0
	})
	store.fail(false)
}
