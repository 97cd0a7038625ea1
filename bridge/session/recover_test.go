// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Recover writes the same summary as Close, except for values that aren't in the CSV. It only overwrites
// a summary on request.
func TestRecoverRebuildsTheSummary(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openTest(t, "telemetry")
	s.AddGeneratedTokens(t.Context(), 5)
	operations := []string{"attention_qkv_proj", "router_logits", "expert_selection", "expert_ffn"}
	for i := range 100 {
		p := Packet{ID: int64(i), Layer: i % 7, Operation: operations[i%4], Device: []string{CPU, IGPU}[i%2]}
		p.Duration = time.Duration(i) * time.Microsecond
		if i%9 == 0 {
			p.Err = textError("a \"quoted\",\ntwo-line error")
		}
		recordAll(t, s, p)
	}
	crash(t, s)
	recovered, err := Recover(s.sum.CSVLog, false)
	must.OK(t, err)
	written, err := readSummary(s.sum.JSONSummary)
	must.OK(t, err)
	equal(t, &recovered.Summary, written)

	want := s.Summary()
	want.TokensGenerated, want.TotalTokens, want.TokensPerSecond = 0, 0, 0
	want.StartTime, want.EndTime, want.TotalTimeS = written.StartTime, written.EndTime, written.TotalTimeS
	equal(t, want, *written)
	if written.StartTime != 1763337869.803673 || written.EndTime != 1763337869.902673 || written.TotalTimeS != 0.099 {
		t.Errorf("the session lasted from %v to %v: %v s", written.StartTime, written.EndTime, written.TotalTimeS)
	}

	torn := strings.Repeat("{ torn", 1000) // longer than the summary
	write(t, s.sum.JSONSummary, torn)
	if _, err := Recover(s.sum.CSVLog, false); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), s.sum.JSONSummary) {
		t.Errorf("second Recover: %v", err)
	}
	equal(t, torn, read(t, s.sum.JSONSummary))
	recovered, err = Recover("telemetry", true) // the newest session
	must.OK(t, err)
	written, err = readSummary(s.sum.JSONSummary)
	must.OK(t, err)
	equal(t, &recovered.Summary, written)
	if entries, _ := os.ReadDir("telemetry"); len(entries) != 2 {
		t.Errorf("the directory has %v", entries)
	}
}

// crash closes the session's file, as the kernel does when a program crashes.
func crash(t *testing.T, s *Session) {
	t.Helper()
	must.OK(t, s.rows.file.Close())
}

func TestRecoverRejectsARunningSession(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("sessions are not locked on this platform")
	}
	s := openTest(t, t.TempDir())
	recordAll(t, s, Packet{Operation: "a", Device: CPU})
	for _, overwrite := range []bool{false, true} {
		if _, err := Recover(s.sum.CSVLog, overwrite); err == nil || !strings.Contains(err.Error(), s.sum.CSVLog+": the session is still running") {
			t.Errorf("while the session is running: %v", err)
		}
	}
	if _, err := Analyze(s.sum.CSVLog); err != nil {
		t.Error(err)
	}
	must.OK(t, s.Close())
	if _, err := Recover(s.sum.CSVLog, true); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

func TestCSVTruncatedAtAnyByteIsReadUpToTheLastCompleteRow(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		complete := strings.ReplaceAll(headerLine, "\n", end)
		for i, row := range []string{
			"1.500000,cpu,w,1.000,1,0,op,True,0.00,\n",
			"1.600000,cpu,w,1.000,2,0,op,False,0.00,\"two\nlines, \"\"quoted\"\"\n\"\n",
			"1.700000,cpu,w,1.000,3,0,op,False,0.00,short\n",
		} {
			row = strings.ReplaceAll(row, "\n", end)
			for at := 1; at <= len(row); at++ {
				content, want := complete+row[:at], []int{i, 1} // complete and skipped rows
				if at == len(row) {
					want = []int{i + 1, 0}
				}
				got := make([]int, 2)
				must.OK(t, readRows(strings.NewReader(content), int64(len(content)), func(*Row) { got[0]++ }, func(SkippedRow) { got[1]++ }))
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("rows and incomplete rows of %q (-want +got):\n%s", content, d)
				}
			}
			complete += row
		}
	}
}
