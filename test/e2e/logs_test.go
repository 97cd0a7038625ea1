// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// logged is the number of log records, by agent and event.
type logged map[string]int

// noRate logs every slow transfer.
const noRate = "receivers: {nixl_shm: {logs: {rate: 1000000}}}\n"

// countLogs counts records.
func countLogs(all []plog.Logs) logged {
	counts := make(logged)
	for _, logs := range all {
		for _, rl := range logs.ResourceLogs().All() {
			path, _ := rl.Resource().Attributes().Get("nixl.telemetry.path")
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					counts[path.Str()+" "+r.EventName()]++
				}
			}
		}
	}
	return counts
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
	dir, backend := t.TempDir(), otlpfile.NewSink(t)
	c := otelcol.Setup{
		Sample:   "logs.yaml",
		Overlays: []string{otelcol.Every(time.Second), otelcol.ExportTo("otlp_http", "file"), noRate},
		Env: []string{
			rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL(), "SLOW_TRANSFER=" + slowInTests.String(), "METRICS_PORT=0",
		},
	}.Start(t)
	const long = 3 * time.Second
	report := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "500", "--error-rate", "0.02", "--seed", "1",
		"--duration", long.String()).wait(t, long)
	totals, records := otlpfile.WantReport(t, report), wantLogged(report)
	if len(records) != 10 {
		t.Fatalf("the simulator has written %v: not every agent has slow transfers and errors", records)
	}
	c.AwaitTotals(t, totals)
	backend.AwaitTotals(t, totals)
	must.Eventually(t, func() string { return cmp.Diff(records, countLogs(backend.Logs())) })
	c.Stop(t, syscall.SIGTERM)
	mustEqual(t, totals, backend.Totals(t))
	if d := cmp.Diff(records, countLogs(backend.Logs())); d != "" {
		t.Errorf("log records (-want +got)\n%s", d)
	}
	c.NoComplaints(t)
}
