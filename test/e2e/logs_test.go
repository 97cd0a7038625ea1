// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// logged is the number of log records, by agent and event.
type logged map[string]int

// addLogFile also writes log records to a file.
func addLogFile(file string, exporters ...string) string {
	return fmt.Sprintf(`
exporters: {file/logs: {path: %q, append: true, flush_interval: 20ms}}
service: {pipelines: {logs: {receivers: [nixl_shm], exporters: [%s]}}}
`, file, strings.Join(append(exporters, "file/logs"), ", "))
}

// noRate logs every slow transfer.
const noRate = "receivers: {nixl_shm: {logs: {rate: 1000000}}}\n"

// readLogs counts the records that a file exporter has written so far, and checks each record.
func readLogs(t *testing.T, file string) logged {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	all := make(logged)
	var unmarshaler plog.JSONUnmarshaler
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		logs, err := unmarshaler.UnmarshalLogs(line)
		must.OK(t, err)
		for _, rl := range logs.ResourceLogs().All() {
			path, _ := rl.Resource().Attributes().Get("nixl.telemetry.path")
			if service, _ := rl.Resource().Attributes().Get("service.name"); service.Str() != "nixl" {
				t.Errorf("resource %v", rl.Resource().Attributes().AsRaw())
			}
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					all[path.Str()+" "+r.EventName()]++
					checkRecord(t, r)
				}
			}
		}
	}
	return all
}

// checkRecord checks that the fields of a record are consistent.
func checkRecord(t *testing.T, r plog.LogRecord) {
	t.Helper()
	a := r.Attributes()
	value := func(key string) pcommon.Value {
		v, ok := a.Get(key)
		if !ok {
			t.Errorf("%s has no %s: %v", r.EventName(), key, a.AsRaw())
			return pcommon.NewValueEmpty()
		}
		return v
	}
	// Only rings of layout v1 have the times of events.
	if age := time.Since(r.ObservedTimestamp().AsTime()); age < 0 || age > time.Hour ||
		r.Timestamp() != 0 && r.ObservedTimestamp().AsTime().Sub(r.Timestamp().AsTime()).Abs() > time.Hour {
		t.Errorf("%s has the time %v, observed at %v", r.EventName(), r.Timestamp().AsTime(), r.ObservedTimestamp().AsTime())
	}
	switch r.EventName() {
	case "nixl.error":
		if value("error.type").Str() == "" || r.SeverityNumber() != plog.SeverityNumberError {
			t.Errorf("error %v, severity %v", a.AsRaw(), r.SeverityNumber())
		}
	case "nixl.transfer.slow":
		size, duration := float64(value("nixl.transfer.size").Int()), value("nixl.transfer.duration").Double()
		rate := float64(value("nixl.transfer.throughput").Int())
		if r.SeverityNumber() != plog.SeverityNumberWarn || duration <= slowInTests.Seconds() ||
			value("nixl.transfer.post.duration").Double() > duration || rate < size/duration-1 || rate > size/duration {
			t.Errorf("transfer %v, severity %v", a.AsRaw(), r.SeverityNumber())
		}
	default:
		t.Errorf("event %q", r.EventName())
	}
}

// slowInTests is a bound of the simulator's histogram of durations, so that its report contains the number
// of slower transfers.
const slowInTests = time.Millisecond

// wantLogged returns the expected numbers of records for a simulator's report.
func wantLogged(r simulate.Report) logged {
	want := make(logged)
	for path, a := range r.Agents {
		for name, v := range a.Points {
			switch v := v.(type) {
			case oracle.Distribution:
				for i, n := range v.Counts {
					if name == "nixl.transfer.duration" && (i == len(v.Bounds) || v.Bounds[i] > slowInTests.Seconds()) {
						want[path+" nixl.transfer.slow"] += int(n)
					}
				}
			case int64:
				if strings.HasPrefix(name, "nixl.errors{") {
					want[path+" nixl.error"] += int(v)
				}
			}
		}
	}
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	return want
}

// Metrics and logs come from one receiver, so each ring must be drained only once.
func TestEachSlowTransferAndErrorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	dir, here, there := t.TempDir(), filepath.Join(t.TempDir(), "logs.json"), filepath.Join(t.TempDir(), "logs.json")
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	backend := setup{overlays: []string{fmt.Sprintf(`
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters: {file/logs: {path: %q, append: true, flush_interval: 20ms}}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [file]}
    logs: {receivers: [otlp], exporters: [file/logs]}
`, address, there)}}.start(t)
	c := setup{
		sample: "logs.yaml",
		overlays: []string{
			every(time.Second), exportTo("otlp_http", "file"), addLogFile(here, "otlp_http"), noRate,
		},
		env: []string{
			rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address,
			"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://" + address + "/v1/logs", "SLOW_TRANSFER=" + slowInTests.String(), "METRICS_PORT=0",
		},
	}.start(t)
	const long = 3 * time.Second
	report := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "500", "--error-rate", "0.02", "--seed", "1",
		"--duration", long.String()).wait(t, long)
	nothingDropped(t, report)
	totals, records := wantReport(t, report), wantLogged(report)
	if len(records) != 10 {
		t.Fatalf("the simulator has written %v: not every agent has slow transfers and errors", records)
	}
	c.awaitTotals(t, totals)
	backend.awaitTotals(t, totals)
	for _, file := range []string{here, there} {
		must.Eventually(t, func() string { return cmp.Diff(records, readLogs(t, file)) })
	}
	c.Stop(t, syscall.SIGTERM)
	backend.Stop(t, syscall.SIGTERM)
	mustEqual(t, totals, backend.totals(t))
	if d := cmp.Diff(records, readLogs(t, there)); d != "" {
		t.Errorf("log records (-want +got)\n%s", d)
	}
	c.noComplaints(t)
	backend.noComplaints(t)
}
