// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

const upstreamSessions = "../../bridge/session/testdata/upstream"

// sessions creates a directory with the two real sessions. The longer one is the newest.
func sessions(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.CopyFS(dir, os.DirFS(upstreamSessions)))
	old := time.Now().Add(-time.Hour)
	must.OK(t, os.Chtimes(filepath.Join(dir, "test_session.csv"), old, old))
	return dir
}

func TestSessionAnalyzeReportsEverything(t *testing.T) {
	dir := sessions(t)
	newest := nixlring(t.Context(), nil, "session", "analyze", dir)
	if newest.code != exitOK || newest.err != "" || !strings.HasPrefix(newest.out, "Session "+filepath.Join(dir, "session_2025-11-17_00-04-29.csv")+"\n") {
		t.Errorf("newest: %+v", newest)
	}
	for _, want := range []string{
		"Packets: 815", "Devices", "Operations by time", "Workers by time", "Layers", "Slowest packets", "Summary of the session",
	} {
		if !strings.Contains(newest.out, want) {
			t.Errorf("missing %q", want)
		}
	}
	named := nixlring(t.Context(), nil, "session", "analyze", filepath.Join(dir, "test_session.csv"))
	if named.code != exitOK || !strings.Contains(named.out, "Failed packets") || !strings.Contains(named.out, "iGPU out of memory") {
		t.Errorf("named: %+v", named)
	}
	t.Chdir(t.TempDir())
	must.OK(t, os.CopyFS("telemetry", os.DirFS(dir)))
	if r := nixlring(t.Context(), nil, "session", "analyze"); r.code != exitOK || !strings.HasPrefix(r.out, "Session telemetry/") {
		t.Errorf("no argument: %+v", r)
	}
}

func TestSessionAnalyzePrintsJSON(t *testing.T) {
	r := nixlring(t.Context(), nil, "session", "analyze", sessions(t), "-o", "json")
	var got analyzed
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	if r.code != exitOK || got.Summary.TotalPackets != 815 || got.Written == nil || got.Written.TotalPackets != 815 ||
		len(got.Slowest) != 5 || len(got.Failures) != 0 || len(got.Layers) != 34 || got.Layers[33].Layer != "33" || got.Workers[0].TimeMS < 100 ||
		len(got.Devices) != 2 || got.Devices[0].Device != "cpu" || got.Devices[0].Packets != 175 {
		t.Errorf("%+v", got)
	}
}

func TestSessionAnalyzePrintsNullForValuesNotInTheCSV(t *testing.T) {
	r := nixlring(t.Context(), nil, "session", "analyze", sessions(t), "-o", "json")
	var got struct {
		Summary map[string]any
		Written map[string]any `json:"written_summary"`
	}
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	for _, field := range []string{"prompt_tokens", "tokens_generated", "total_tokens", "tokens_per_second", "cpu_igpu_contention_events"} {
		if v, ok := got.Summary[field]; !ok || v != nil || got.Written[field] == nil {
			t.Errorf("%s is %v in the summary of the CSV, and %v in the session's own", field, v, got.Written[field])
		}
	}
	if got.Summary["total_packets_processed"] != 815.0 {
		t.Errorf("%v", got.Summary)
	}
}

func TestSessionAnalyzeExplainsThatThereIsNothingToAnalyze(t *testing.T) {
	dir := t.TempDir()
	letter := filepath.Join(t.TempDir(), "letter")
	must.OK(t, os.WriteFile(letter, []byte("Dear Sir or Madam"), 0o600))
	for want, path := range map[string]string{
		"no such file":                filepath.Join(dir, "missing"),
		"no session in the directory": dir,
		"not the CSV of a session":    letter,
	} {
		if r := nixlring(t.Context(), nil, "session", "analyze", path); r.code != exitError || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	header, _, _ := strings.Cut(string(readFile(t, filepath.Join(sessions(t), "test_session.csv"))), "\n")
	empty := filepath.Join(dir, "empty.csv")
	must.OK(t, os.WriteFile(empty, []byte(header+"\n"), 0o600))
	r := nixlring(t.Context(), nil, "session", "analyze", empty)
	if r.code != exitOK || !strings.Contains(r.out, "Warning: the file has no packets") || r.err != "" {
		t.Errorf("empty: %+v", r)
	}
	r = nixlring(t.Context(), nil, "session", "analyze", empty, "-o", "json")
	if r.code != exitOK || !json.Valid([]byte(r.out)) || !strings.Contains(r.err, "there are no packets in ") {
		t.Errorf("empty, as JSON: %+v", r)
	}
}

// crashed creates a directory with the CSV of a session without its summary.
func crashed(t *testing.T) (dir, csv string) {
	t.Helper()
	dir = t.TempDir()
	csv = filepath.Join(dir, "run.csv")
	must.OK(t, os.WriteFile(csv, readFile(t, filepath.Join(upstreamSessions, "test_session.csv")), 0o600))
	return dir, csv
}

func TestSessionRecoverRebuildsTheSummary(t *testing.T) {
	dir, csv := crashed(t)
	r := nixlring(t.Context(), nil, "session", "recover", dir)
	if r.code != exitOK || r.err != "" || r.out != filepath.Join(dir, "run.json")+": 5 packets, 1 failed; tokens and contention events are unknown\n" {
		t.Errorf("%+v", r)
	}
	r = nixlring(t.Context(), nil, "session", "analyze", csv)
	if r.code != exitOK || !strings.Contains(r.out, "Summary of the session") {
		t.Errorf("%+v", r)
	}
}

func TestSessionRecoverOverwritesOnlyWithForceFlag(t *testing.T) {
	_, csv := crashed(t)
	summary := strings.TrimSuffix(csv, "csv") + "json"
	const want = "recover session: open "
	for _, content := range []string{`{"prompt_tokens": 3}`, "{ torn"} {
		must.OK(t, os.WriteFile(summary, []byte(content), 0o600))
		r := nixlring(t.Context(), nil, "session", "recover", csv)
		if r.code != exitError || r.out != "" || !strings.Contains(r.err, summary) || !strings.Contains(r.err, want) || !strings.Contains(r.err, "--force") {
			t.Errorf("%s: %+v", content, r)
		}
		if got := string(readFile(t, summary)); got != content {
			t.Errorf("the summary was changed to %q", got)
		}
		if r := nixlring(t.Context(), nil, "session", "recover", csv, "--force"); r.code != exitOK || !json.Valid(readFile(t, summary)) {
			t.Errorf("forced: %+v", r)
		}
	}
}

func TestSessionRecoverReportsErrors(t *testing.T) {
	dir := t.TempDir()
	letter := filepath.Join(t.TempDir(), "letter")
	must.OK(t, os.WriteFile(letter, []byte("Dear Sir or Madam"), 0o600))
	for want, path := range map[string]string{
		"no such file":                filepath.Join(dir, "missing"),
		"no session in the directory": dir,
		"not the CSV of a session":    letter,
	} {
		if r := nixlring(t.Context(), nil, "session", "recover", path); r.code != exitError || r.out != "" || !strings.Contains(r.err, want) ||
			strings.Contains(r.err, "analyze session") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	running, err := session.Open(t.TempDir(), session.WithName("running"))
	must.OK(t, err)
	defer running.Close()
	path := running.Summary().CSVLog
	if r := nixlring(t.Context(), nil, "session", "recover", path, "--force"); r.code != exitError || !strings.Contains(r.err, "the session is still running") {
		t.Errorf("running: %+v", r)
	}
	_, csv := crashed(t)
	must.OK(t, os.Truncate(csv, int64(len(readFile(t, csv))-3)))
	r := nixlring(t.Context(), nil, "session", "recover", csv)
	if r.code != exitOK || !strings.Contains(r.out, "4 packets, 0 failed") || !strings.Contains(r.err, "line 6 of "+csv+" was skipped: incomplete") {
		t.Errorf("truncated: %+v", r)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	return b
}
