// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// The analysis of a real session's CSV equals the session's own summary: counts
// exactly, times within the rounding of the CSV. Averages only include successful
// packets, whereas the Python program also includes failed ones.
func TestAnalysisOfRealSessionsMatchesTheirSummaries(t *testing.T) {
	for _, name := range upstream {
		r, err := Analyze(upstreamPath(name + ".csv"))
		must.OK(t, err)
		equal(t, "", r.Problem)
		want, got := *r.Written, r.Summary
		for name, o := range want.Operations {
			o.AvgTimeMS = ratio(o.TotalTimeMS, float64(o.Count-o.FailedCount))
			want.Operations[name] = o
		}
		for _, s := range []*Summary{&want, &got} { // the CSV doesn't contain these
			s.StartTime, s.EndTime, s.TotalTimeS, s.CSVLog, s.JSONSummary = 0, 0, 0, "", ""
			s.PromptTokens, s.TokensGenerated, s.TotalTokens, s.TokensPerSecond, s.ContentionEvents = 0, 0, 0, 0, 0
		}
		if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 0.0005*float64(want.TotalPackets))); d != "" {
			t.Errorf("%s (-session +analysis):\n%s", name, d)
		}
	}
}

func TestReportOfRealSessionsMatchesTheGoldenFiles(t *testing.T) {
	t.Chdir(upstreamPath(""))
	for _, name := range upstream {
		r, err := Analyze(name + ".csv")
		must.OK(t, err)
		golden(t, name+".golden.txt", r.String())
	}
}

func TestAnalysisKeepsTheFirst100FailuresAndSkippedRows(t *testing.T) {
	s := openTest(t, t.TempDir())
	for i := range 150 {
		recordAll(t, s, Packet{ID: int64(i), Operation: "a", Device: CPU, Err: textError("no\x1b[31m")})
	}
	write(t, s.sum.CSVLog, read(t, s.sum.CSVLog)+strings.Repeat("1.5,cpu\n", 120))
	r, err := Analyze(s.sum.CSVLog)
	must.OK(t, err)
	equal(t, []int64{100, 150, 100, 120}, []int64{int64(len(r.Failures)), r.Summary.FailedPackets, int64(len(r.Skipped)), r.SkippedRows})
	if got := r.String(); !strings.Contains(got, "First failed packets") || strings.Contains(got, "\x1b") || strings.Contains(got, "Slowest") {
		t.Errorf("the report is\n%s", got)
	}
}

func TestAnalyzeSelectsTheNewestFileOfADirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := "telemetry"
	if err := os.MkdirAll(filepath.Join(dir, "z.csv"), 0o755); err != nil { // not a file
		t.Fatal(err)
	}
	for i, name := range []string{"c.csv", "a.csv", "b.csv", "d.json"} {
		path := filepath.Join(dir, name)
		write(t, path, headerLine)
		at := epoch.Add(time.Duration(min(i, 1)) * time.Hour)
		must.OK(t, os.Chtimes(path, at, at))
	}
	for _, path := range []string{"", dir} {
		r, err := Analyze(path)
		must.OK(t, err)
		if want := filepath.Join(dir, "b.csv"); r.Path != want {
			t.Errorf("the newest of %q is %s, want %s", path, r.Path, want)
		}
	}
}

func TestAnalyzeOfAMissingPathIsAnError(t *testing.T) {
	empty := t.TempDir()
	for path, want := range map[string]error{
		filepath.Join(empty, "no-such-file.csv"): fs.ErrNotExist,
		empty:                                    ErrNoSession,
	} {
		_, err := Analyze(path)
		_, recoverErr := Recover(path, false)
		for _, err := range []error{err, recoverErr} {
			if !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		}
	}
}

func TestReportWarns(t *testing.T) {
	const noPackets = "Warning: the file has no packets"
	for name, c := range map[string]struct{ csv, json, want string }{
		"no bytes":               {"", "", noPackets},
		"byte order mark":        {"\uFEFF" + headerLine, "", noPackets},
		"header with CRLF":       {strings.ReplaceAll(headerLine, "\n", "\r\n"), "", noPackets},
		"part of a header":       {headerLine[:30], "", noPackets},
		"header without its end": {strings.TrimSpace(headerLine), "", noPackets},
		"broken summary":         {headerLine, "{", "Warning: the summary can't be read"},
		"incomplete row":         {headerLine + "1.6,cpu", "", "line 2: incomplete"},
		// as after a power failure
		"zeros at the end": {headerLine + "1.5,cpu,w,1.0,1,0,op,True,0.00,\n" + strings.Repeat("\x00", 5000), "", "line 3: incomplete"},
	} {
		path := filepath.Join(t.TempDir(), "x")
		write(t, path+".csv", c.csv)
		if c.json != "" {
			write(t, path+".json", c.json)
		}
		r, err := Analyze(path + ".csv")
		must.OK(t, err)
		if got := r.String(); !strings.Contains(got, c.want) || (c.json == "") != (r.Problem == "") {
			t.Errorf("%s: the report is\n%s", name, got)
		}
	}
}
