package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const upstreamSessions = "../../bridge/session/testdata/upstream"

// sessions is a directory with the two real sessions, of which the longer one
// is the newest.
func sessions(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(upstreamSessions)))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "test_session.csv"), old, old))
	return dir
}

func TestS10SessionAnalyze(t *testing.T) {
	dir := sessions(t)
	newest := nixlring(t.Context(), nil, "session", "analyze", dir)
	if newest.code != exitOK || newest.err != "" || !strings.HasPrefix(newest.out, "Session "+filepath.Join(dir, "session_2025-11-17_00-04-29.csv")+"\n") {
		t.Errorf("newest: %+v", newest)
	}
	for _, want := range []string{"Overall", "Workers by time", "Layers", "Slowest packets", "Summary of the session", "5. "} {
		if !strings.Contains(newest.out, want) {
			t.Errorf("no %q", want)
		}
	}
	named := nixlring(t.Context(), nil, "session", "analyze", filepath.Join(dir, "test_session.csv"))
	if named.code != exitOK || !strings.Contains(named.out, "Failed packets") || !strings.Contains(named.out, "iGPU out of memory") {
		t.Errorf("named: %+v", named)
	}
	t.Chdir(t.TempDir())
	must(t, os.CopyFS("telemetry", os.DirFS(dir)))
	if r := nixlring(t.Context(), nil, "session", "analyze"); r.code != exitOK || !strings.HasPrefix(r.out, "Session telemetry/") {
		t.Errorf("no argument: %+v", r)
	}
}

func TestS10SessionAnalyzeJSON(t *testing.T) {
	r := nixlring(t.Context(), nil, "session", "analyze", sessions(t), "-o", "json")
	var got analyzed
	must(t, json.Unmarshal([]byte(r.out), &got))
	if r.code != exitOK || got.Summary.TotalPackets != 815 || got.Written == nil || got.Written.TotalPackets != 815 ||
		len(got.Slowest) != 5 || len(got.Failures) != 0 || len(got.Layers) != 34 || *got.Layers[33].Layer != 33 || got.Workers[0].TimeMS < 100 {
		t.Errorf("%+v", got)
	}
}

// What a CSV doesn't say isn't 0.
func TestSessionAnalyzeUnknown(t *testing.T) {
	r := nixlring(t.Context(), nil, "session", "analyze", sessions(t), "-o", "json")
	var got struct {
		Summary map[string]any
		Written map[string]any `json:"written_summary"`
	}
	must(t, json.Unmarshal([]byte(r.out), &got))
	for _, field := range []string{"prompt_tokens", "tokens_generated", "total_tokens", "tokens_per_second", "cpu_igpu_contention_events"} {
		if v, ok := got.Summary[field]; !ok || v != nil || got.Written[field] == nil {
			t.Errorf("%s is %v, and %v as it was written", field, v, got.Written[field])
		}
	}
	if got.Summary["total_packets_processed"] != 815.0 {
		t.Errorf("%v", got.Summary)
	}
}

func TestSessionAnalyzeWorkers(t *testing.T) {
	dir := sessions(t)
	some := nixlring(t.Context(), nil, "session", "analyze", dir)
	all := nixlring(t.Context(), nil, "session", "analyze", dir, "--all")
	if !strings.Contains(some.out, "  and 48 more ") || strings.Contains(all.out, " more ") || strings.Count(all.out, "\n") != strings.Count(some.out, "\n")+47 {
		t.Errorf("%s\n%s", some.out, all.out)
	}
}

func TestS10SessionAnalyzeNothing(t *testing.T) {
	dir := t.TempDir()
	letter := filepath.Join(t.TempDir(), "letter")
	must(t, os.WriteFile(letter, []byte("Dear Sir or Madam"), 0o600))
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
	must(t, os.WriteFile(empty, []byte(header+"\n"), 0o600))
	r := nixlring(t.Context(), nil, "session", "analyze", empty, "--plot", filepath.Join(dir, "plots"))
	if r.code != exitOK || !strings.Contains(r.out, "Warning: there are no packets") || r.err != "nothing to draw\n" {
		t.Errorf("empty: %+v", r)
	}
	r = nixlring(t.Context(), nil, "session", "analyze", empty, "-o", "json")
	if r.code != exitOK || !json.Valid([]byte(r.out)) || !strings.Contains(r.err, "there are no packets in ") {
		t.Errorf("empty, as JSON: %+v", r)
	}
}

func TestS10SessionPlot(t *testing.T) {
	plots := filepath.Join(t.TempDir(), "plots")
	for _, format := range []string{"png", "svg"} {
		r := nixlring(t.Context(), nil, "session", "analyze", sessions(t), "--plot", plots, "--format", format)
		if r.code != exitOK || strings.Count(r.err, "drawn: "+plots) != 4 {
			t.Errorf("%+v", r)
		}
	}
	files, err := os.ReadDir(plots)
	if err != nil || len(files) != 8 {
		t.Errorf("%v %v", files, err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}
