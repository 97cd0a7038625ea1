// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// The analysis of a real session's CSV equals the session's own summary: counts
// exactly, times within the rounding of the CSV. Averages only include successful
// packets, whereas the Python program also includes failed ones.
func TestAnalysisOfRealSessionsMatchesTheirSummaries(t *testing.T) {
	for _, name := range upstream {
		t.Run(name, func(t *testing.T) {
			r, err := Analyze(upstreamPath(name + ".csv"))
			must.OK(t, err)
			got, want := r.Summary, r.Written
			if want == nil {
				t.Fatalf("the summary wasn't read: %v", r.WrittenErr)
			}
			equal(t, want.TotalPackets, got.TotalPackets)
			equal(t, want.CPUPackets, got.CPUPackets)
			equal(t, want.IGPUPackets, got.IGPUPackets)
			equal(t, want.FailedPackets, got.FailedPackets)
			equal(t, want.SuccessRate, got.SuccessRate)
			equal(t, want.CPUUtilization, got.CPUUtilization)
			equal(t, want.IGPUUtilization, got.IGPUUtilization)
			equal(t, want.ExpertSelections, got.ExpertSelections)
			equal(t, want.SessionName, got.SessionName)
			for _, times := range []struct {
				name      string
				got, want float64
				rows      int64
			}{
				{"total cpu", got.TotalCPUTimeMS, want.TotalCPUTimeMS, want.CPUPackets},
				{"total igpu", got.TotalIGPUTimeMS, want.TotalIGPUTimeMS, want.IGPUPackets},
				{"avg cpu", got.AvgCPUTimeMS, want.AvgCPUTimeMS, 1},
				{"avg igpu", got.AvgIGPUTimeMS, want.AvgIGPUTimeMS, 1},
			} {
				if !near(times.got, times.want, times.rows) {
					t.Errorf("%s is %v ms, want %v", times.name, times.got, times.want)
				}
			}
			sameOperations(t, want.Operations, got.Operations)
			// The durations of test_session's packets are longer than the session.
			if lasted := name != "test_session"; lasted && got.StartTime < want.StartTime || got.EndTime > want.EndTime {
				t.Errorf("packets from %v to %v are not within the session", got.StartTime, got.EndTime)
			}
		})
	}
}

func sameOperations(t *testing.T, want, got map[string]OperationSummary) {
	t.Helper()
	equal(t, len(want), len(got))
	for name, w := range want {
		g := got[name]
		average := ratio(w.TotalTimeMS, float64(w.Count-w.FailedCount)) // without failures
		if w.FailedCount == 0 && average != w.AvgTimeMS {
			t.Errorf("%s: upstream's average is %v, not %v", name, w.AvgTimeMS, average)
		}
		if g.Count != w.Count || g.FailedCount != w.FailedCount || g.CPUCount != w.CPUCount || g.IGPUCount != w.IGPUCount ||
			!near(g.TotalTimeMS, w.TotalTimeMS, w.Count) || !near(g.AvgTimeMS, average, 1) ||
			!near(*g.MinTimeMS, *w.MinTimeMS, 1) || !near(g.MaxTimeMS, w.MaxTimeMS, 1) {
			t.Errorf("%s is %+v, want %+v", name, g, w)
		}
	}
}

func TestReportOfRealSessionsMatchesTheGoldenFiles(t *testing.T) {
	t.Chdir(filepath.Join("testdata", "upstream"))
	texts := map[string]string{}
	for _, name := range upstream {
		r, err := Analyze(name + ".csv")
		must.OK(t, err)
		texts[name] = textOf(t, r)
	}
	t.Chdir(testdataParent)
	for name, text := range texts {
		golden(t, name+".golden.txt", text)
	}
}

func TestReportHasNoEmptySections(t *testing.T) {
	s := openTest(t, t.TempDir())
	recordAll(t, s, Packet{ID: 1, Operation: "embedding", Device: CPU, Err: textError("no memory")})
	r, err := Analyze(s.files.csv)
	must.OK(t, err)
	got := textOf(t, r)
	for _, heading := range []string{"Devices", "Workers by time", "Layers", "Slowest packets"} {
		if strings.Contains(got, heading) {
			t.Errorf("%s is empty in\n%s", heading, got)
		}
	}
	if !strings.Contains(got, "Failed packets") {
		t.Error(got)
	}
}

func TestReportListsTheWorkersWithTheMostTime(t *testing.T) {
	r, err := Analyze(upstreamPath("session_2025-11-17_00-04-29.csv"))
	must.OK(t, err)
	workers := len(r.Workers)
	if got := textOf(t, r); strings.Count(got, "igpu_attention_layer_") >= workersListed || !strings.Contains(got, fmt.Sprintf("  %d more ", workers-workersListed)) {
		t.Errorf("%d workers:\n%s", workers, got)
	}
	r.AllWorkers = true
	if got := textOf(t, r); !strings.Contains(got, r.Workers[workers-1].Name+" ") || strings.Contains(got, " more ") {
		t.Errorf("all %d workers:\n%s", workers, got)
	}
}

func textOf(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	n, err := r.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", n, b.Len(), err)
	}
	return b.String()
}

func TestAnalysisKeepsFailuresUpToALimit(t *testing.T) {
	s := openTest(t, t.TempDir())
	for i := range 150 {
		recordAll(t, s, Packet{ID: int64(i), Operation: "a", Device: CPU, Err: textError("no\x1b[31m")})
	}
	r, err := Analyze(s.files.csv)
	must.OK(t, err)
	if len(r.Failures) != failuresKept || r.Summary.FailedPackets != 150 {
		t.Errorf("%d failures of %d", len(r.Failures), r.Summary.FailedPackets)
	}
	got := textOf(t, r)
	if !strings.Contains(got, "  50 more") {
		t.Errorf("the report hides failures:\n%s", got)
	}
	if strings.Contains(got, "\x1b") {
		t.Error("the report contains a control character")
	}
}

func TestAnalyzeSelectsTheNewestFileOfADirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := "telemetry"
	if err := os.MkdirAll(filepath.Join(dir, "z.csv"), 0o755); err != nil { // not a file
		t.Fatal(err)
	}
	for i, name := range []string{"b.csv", "c.csv", "a.csv", "d.json"} {
		path := filepath.Join(dir, name)
		write(t, path, headerLine)
		at := epoch.Add(time.Duration(min(i, 2)) * time.Hour)
		must.OK(t, os.Chtimes(path, at, at))
	}
	for _, path := range []string{"", dir} {
		r, err := Analyze(path)
		must.OK(t, err)
		if want := filepath.Join(dir, "a.csv"); r.Path != want {
			t.Errorf("the newest of %q is %s, want %s", path, r.Path, want)
		}
	}
}

func TestAnalyzeOfAMissingPathIsAnError(t *testing.T) {
	empty := t.TempDir()
	for path, want := range map[string]error{
		filepath.Join(empty, "no-directory"):     fs.ErrNotExist,
		filepath.Join(empty, "no-directory/x"):   fs.ErrNotExist,
		filepath.Join(empty, "no-such-file.csv"): fs.ErrNotExist,
		empty:                                    ErrNoSession,
	} {
		r, err := Analyze(path)
		if !errors.Is(err, want) || r != nil {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%q doesn't contain the path", err)
		}
	}
}

func TestReportWarns(t *testing.T) {
	valid := headerLine + "1.5,cpu,w,1.0,1,0,op,True,0.00,\n"
	const noPackets = "Warning: the file has no packets"
	for name, c := range map[string]struct{ csv, json, want string }{
		"no bytes":               {"", "", noPackets},
		"header":                 {headerLine, "", noPackets},
		"header with CRLF":       {strings.ReplaceAll(headerLine, "\n", "\r\n"), "", noPackets},
		"part of a header":       {headerLine[:30], "", noPackets},
		"header without its end": {strings.TrimSpace(headerLine), "", noPackets},
		"broken summary":         {valid, "{", "Warning: the summary can't be read"},
		"incomplete row":         {valid + "1.6,cpu", "", "line 3: incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			write(t, path+".csv", c.csv)
			if c.json != "" {
				write(t, path+".json", c.json)
			}
			r, err := Analyze(path + ".csv")
			must.OK(t, err)
			if got := textOf(t, r); !strings.Contains(got, c.want) {
				t.Errorf("the report is\n%s", got)
			}
		})
	}
}
