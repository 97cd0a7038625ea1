// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// victoriaLogs is a logs backend that receives OTLP.
type victoriaLogs struct {
	*proc.Process

	url string
}

func newVictoriaLogs(t *testing.T) *victoriaLogs {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	v := &victoriaLogs{
		Process: proc.Start(t, exec.CommandContext(t.Context(), victoriaLogsBin, "-storageDataPath="+t.TempDir(), "-httpListenAddr="+address)),
		url:     "http://" + address,
	}
	v.WaitFor(t, "started server at")
	return v
}

// query returns the rows that a LogsQL query finds.
func (v *victoriaLogs) query(t *testing.T, query string) (rows []map[string]string) {
	t.Helper()
	answer, err := http.PostForm(v.url+"/select/logsql/query", url.Values{"query": {query}}) //nolint:noctx // the test ends the process
	must.OK(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", query, answer.Status, err, text)
	}
	for line := range strings.Lines(string(text)) {
		var row map[string]string
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows = append(rows, row)
	}
	return rows
}

// logged is the number of log records, by agent.
type logged struct{ Slow, Errors map[string]int }

// logged counts the records by the attributes and the severity that operators filter by. VictoriaLogs doesn't
// store event names.
func (v *victoriaLogs) logged(t *testing.T) logged {
	t.Helper()
	count := func(query string) map[string]int {
		all := make(map[string]int)
		for _, row := range v.query(t, query+` "service.name":nixl | stats by ("nixl.telemetry.path") count() n`) {
			var n int
			_, err := fmt.Sscan(row["n"], &n)
			must.OK(t, err)
			all[row["nixl.telemetry.path"]] = n
		}
		return all
	}
	return logged{count(`"nixl.transfer.size":* severity:WARN "nixl.transfer.duration":>0.001`), count(`"error.type":* severity:ERROR`)}
}

// slowInTests is a bound of the simulator's histogram of durations, so that its report contains the number
// of slower transfers.
const slowInTests = time.Millisecond

// wantLogged returns the expected numbers of records for a simulator's report.
func wantLogged(r simulate.Report) logged {
	want := logged{make(map[string]int), make(map[string]int)}
	for path, a := range r.Agents {
		for name, v := range a.Points {
			switch v := v.(type) {
			case oracle.Distribution:
				for i, n := range v.Counts {
					if name == "nixl.transfer.duration" && (i == len(v.Bounds) || v.Bounds[i] > slowInTests.Seconds()) {
						want.Slow[path] += int(n)
					}
				}
			case int64:
				if strings.HasPrefix(name, "nixl.errors{") {
					want.Errors[path] += int(v)
				}
			}
		}
	}
	return want
}

// Metrics and logs come from one receiver, so each ring must be drained only once.
func TestScaleEachSlowTransferAndErrorIsLoggedOnce(t *testing.T) {
	if victoriaLogsBin == "" {
		t.Skip("VICTORIA_LOGS isn't set")
	}
	t.Parallel()
	backend, dir := newVictoriaLogs(t), t.TempDir()
	c := otelcol.Setup{
		Sample:   "logs.yaml",
		Overlays: []string{otelcol.Every(time.Second), otelcol.ExportTo("file"), "receivers: {nixl_shm: {logs: {rate: 1000000}}}\n"},
		Env: []string{
			rings(dir), "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=" + backend.url + "/insert/opentelemetry/v1/logs", "SLOW_TRANSFER=" + slowInTests.String(), "METRICS_PORT=0",
		},
	}.Start(t)
	const long = 2 * time.Second
	report := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "500", "--error-rate", "0.02", "--seed", "1",
		"--duration", long.String()).wait(t, long)
	want := wantLogged(report)
	must.Eventually(t, func() string { return cmp.Diff(want, backend.logged(t)) })
	c.AwaitTotals(t, otlpfile.WantReport(t, report))
	host, err := os.Hostname()
	must.OK(t, err)
	agent := filepath.Join(dir, "sim-0")
	shown := backend.query(t, strings.NewReplacer("$agent", filepath.Base(agent), "$host", host).Replace(panelOfVictoriaLogs(t)))
	if d := cmp.Diff(want.Slow[agent], len(shown)); d != "" {
		t.Errorf("slow transfers of %s on the dashboard (-want +got)\n%s", agent, d)
	}
	c.Stop(t, syscall.SIGTERM)
	c.NoComplaints(t)
}

// panelOfVictoriaLogs returns the query of the agent dashboard's panel of slow transfers.
func panelOfVictoriaLogs(t *testing.T) string {
	t.Helper()
	type panel struct {
		Panels  []panel
		Targets []struct {
			Datasource struct{ Type string }
			Expr       string
		}
	}
	var board panel
	b, err := os.ReadFile("../../dashboards/grafana/nixl-agent.json")
	must.OK(t, err)
	must.OK(t, json.Unmarshal(b, &board))
	for _, row := range board.Panels {
		for _, p := range row.Panels {
			for _, target := range p.Targets {
				if target.Datasource.Type == "victoriametrics-logs-datasource" {
					return target.Expr
				}
			}
		}
	}
	t.Fatal("the dashboard has no panel of VictoriaLogs")
	return ""
}
