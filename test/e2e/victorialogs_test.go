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

	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
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

// logged returns the number of records, by agent and event. VictoriaLogs doesn't
// store event names, but the attributes of the two events differ.
func (v *victoriaLogs) logged(t *testing.T) logged {
	t.Helper()
	all := make(logged)
	for event, attribute := range map[string]string{"nixl.transfer.slow": "nixl.transfer.size", "nixl.error": "error.type"} {
		for _, row := range v.query(t, fmt.Sprintf(`%q:* | stats by ("nixl.telemetry.path") count() n`, attribute)) {
			var n int
			if _, err := fmt.Sscan(row["n"], &n); err != nil {
				t.Fatal(err)
			}
			all[row["nixl.telemetry.path"]+" "+event] += n
		}
	}
	return all
}

// The test queries the attributes and the severity that operators filter by.
func TestScaleLogsBackendStoresEachSlowTransferAndErrorOnce(t *testing.T) {
	if victoriaLogsBin == "" {
		t.Skip("VICTORIA_LOGS isn't set")
	}
	t.Parallel()
	backend, dir := newVictoriaLogs(t), t.TempDir()
	c := otelcol.Setup{
		Sample:   "logs.yaml",
		Overlays: []string{otelcol.Every(time.Second), otelcol.ExportTo("otlp_http", "file"), noRate},
		Env: []string{
			rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
			"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=" + backend.url + "/insert/opentelemetry/v1/logs", "SLOW_TRANSFER=" + slowInTests.String(), "METRICS_PORT=0",
		},
	}.Start(t)
	const long = 2 * time.Second
	report := startSimulator(t, dir, "--agents", "3", "--rate", "300", "--error-rate", "0.02", "--seed", "3",
		"--duration", long.String()).wait(t, long)
	want := wantLogged(report)
	must.Eventually(t, func() string { return cmp.Diff(want, backend.logged(t)) })
	slow := backend.query(t, `"nixl.transfer.size":* severity:WARN "service.name":nixl "nixl.transfer.duration":>0.001 | stats count() n`)
	n := 0
	for event, count := range want {
		if strings.HasSuffix(event, ".slow") {
			n += count
		}
	}
	if len(slow) != 1 || slow[0]["n"] != fmt.Sprint(n) {
		t.Errorf("the query finds %v, want %d slow transfers", slow, n)
	}
	host, err := identity.HostName()
	must.OK(t, err)
	agent := filepath.Join(dir, "sim-0")
	shown := backend.query(t, strings.NewReplacer("$agent", filepath.Base(agent), "$host", host).Replace(panelOfVictoriaLogs(t)))
	if n := want[agent+" nixl.transfer.slow"]; len(shown) != n || n == 0 {
		t.Errorf("the dashboard shows %d slow transfers of %s, want %d", len(shown), agent, n)
	}
	c.Stop(t, syscall.SIGTERM)
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
