// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// withTelemetry returns the receiver's own telemetry.
func (h *harness) withTelemetry() *componenttest.Telemetry {
	telemetry := componenttest.NewTelemetry()
	h.tb.Cleanup(func() { _ = telemetry.Shutdown(h.tb.Context()) })
	logger := h.settings.Logger
	h.settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	h.settings.Logger = logger
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
	exited := ring(t, dir, "exited", ringbuf.V1, 16)
	for _, w := range []*ringbuf.Writer{exited, ring(t, dir, "running", ringbuf.V4, 16), ring(t, dir, "another", ringbuf.V4, 16)} {
		push(t, w, write(1, 1, 1)...)
	}
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
	h.startWith(3)
	want := map[string]int64{"open": 2, "stale": 1, "refused/version": 1, "refused/invalid": 1, "refused/locked": 1}
	must.EventuallyTrue(t, "rings in the receiver's telemetry", func() bool {
		h.next()
		return cmp.Equal(want, sums(t, telemetry, "rings"))
	})
	if d := cmp.Diff(map[string]int64{"v1": 1, "v4": 2}, sums(t, telemetry, "agents")); d != "" {
		t.Errorf("agents (-want +got)\n%s", d)
	}
	// A ring that is refused is counted before the next collection.
	ringtest.Make(t, filepath.Join(dir, "second"), ringtest.NewHeader(99, 16), 1024)
	h.log("ring can't be opened", "/second")
	want["refused/version"]++
	if d := cmp.Diff(want, sums(t, telemetry, "rings")); d != "" {
		t.Errorf("rings (-want +got)\n%s", d)
	}
	h.shutdown()
	if got := sums(t, telemetry, "rings"); len(got) != 0 {
		t.Errorf("rings after the shutdown: %v", got)
	}
}

func TestTelemetryMeasuresDrains(t *testing.T) {
	h := agentHarness(t)
	telemetry := h.withTelemetry()
	h.start()
	for range 5 {
		h.push(write(1, 1, 1)...)
		h.drained()
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
	h := stored(t, dir, store)
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

func TestCollectorCountsAcceptedAndRefusedPoints(t *testing.T) {
	h := agentHarness(t, often)
	h.push(write(1, 1, 1)...)
	telemetry := h.withTelemetry()
	down := make(chan struct{})
	h.consume = backend(down)
	h.start()
	h.log("next consumer rejected the metrics")
	close(down)
	taken := int64(h.next().DataPointCount())
	must.OK(t, h.stop())
	for len(h.batches) > 0 {
		taken += int64((<-h.batches).DataPointCount())
	}

	accepted, refused := counted(t, telemetry, h, "accepted_metric_points"), counted(t, telemetry, h, "refused_metric_points")
	if accepted != taken || refused == 0 {
		t.Errorf("%d points accepted and %d refused, want %d and at least 1", accepted, refused, taken)
	}
	spans := telemetry.SpanRecorder.Ended()
	if name := "receiver/" + h.settings.ID.String() + "/MetricsReceived"; len(spans) == 0 || spans[0].Name() != name {
		t.Errorf("%d spans, want spans named %s", len(spans), name)
	}
}

func TestCollectorCountsAcceptedAndRefusedLogRecords(t *testing.T) {
	h := agentHarness(t).withLogs()
	telemetry := h.withTelemetry()
	answers := make(chan error, 1)
	h.consumeLogs = func(context.Context, plog.Logs) error { return <-answers }
	h.start()
	answers <- consumererror.NewPermanent(errors.New("invalid record"))
	h.push(slow...)
	h.log("the next consumer rejected log records")
	answers <- nil
	h.push(slow...)
	h.awaitLogged(1)
	must.OK(t, h.stop())
	got := [2]int64{counted(t, telemetry, h, "accepted_log_records"), counted(t, telemetry, h, "refused_log_records")}
	if d := cmp.Diff([2]int64{1, 1}, got); d != "" {
		t.Errorf("accepted and refused (-want +got)\n%s", d)
	}
}

// counted returns the Collector's count of accepted or refused points or records.
func counted(t *testing.T, telemetry *componenttest.Telemetry, h *harness, what string) int64 {
	t.Helper()
	m, err := telemetry.GetMetric("otelcol_receiver_" + what)
	must.OK(t, err)
	want := attribute.NewSet(attribute.String("receiver", h.settings.ID.String()), attribute.String("transport", "shm"))
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints { //nolint:errcheck // or the test panics
		if dp.Attributes.Equals(&want) {
			return dp.Value
		}
	}
	t.Fatalf("%s has no point with %v", m.Name, want)
	return 0
}

// mustSay waits for a status and checks it.
func (h *harness) mustSay(want componentstatus.Status, parts ...string) {
	h.tb.Helper()
	e := h.status()
	text := ""
	if e.Err() != nil {
		text = e.Err().Error()
	}
	if e.Status() != want || !containsAll(text, parts) {
		h.tb.Errorf("status is %v (%s), want %v (%s)", e.Status(), text, want, strings.Join(parts, ", "))
	}
}

func TestStatusIsRecoverableErrorWhileADirectoryIsMissing(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	dir := filepath.Join(t.TempDir(), "later")
	h := newHarness(t, dir, often).start()
	h.log("warn: ", "telemetry directory can't be read", "NIXL_TELEMETRY_DIR", dir)
	h.mustSay(componentstatus.StatusRecoverableError, "telemetry directory can't be read", dir, "no such file")

	// The status recovers once the directory exists.
	w := ring(t, dir, "agent", ringbuf.V4, 16)
	push(t, w, write(7, 1, 1)...)
	h.log("info: ", "telemetry directory can be read now", dir)
	h.mustSay(componentstatus.StatusOK)
	h.until(func(all agents) bool { return all["agent"].int(transmitted) == 7 })
	if n := len(h.statuses); n > 0 {
		t.Errorf("%d more statuses, want none", n)
	}
}

// All notices are logged by one function.
func TestLogLinesHaveNoMeaninglessCaller(t *testing.T) {
	core, lines := observer.New(zapcore.InfoLevel)
	r := ringReceiver{log: zap.New(core, zap.AddCaller(), zap.AddStacktrace(zapcore.ErrorLevel))}
	r.notice(notice.Notice{Level: slog.LevelError, Text: "ring can't be opened"})
	if line := lines.All()[0]; line.Caller.Defined || line.Stack != "" || len(line.Context) != 0 {
		t.Errorf("caller %v, stack %q, fields %v", line.Caller, line.Stack, line.Context)
	}
}
