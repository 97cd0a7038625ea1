// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// Recover writes the same summary as Close, except for values that aren't in the CSV.
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
	if _, err := Recover(s.sum.CSVLog, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Recover: %v", err)
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

func TestRecoverOverwritesOnlyOnRequest(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	recordAll(t, s, Packet{Operation: "a", Device: CPU})
	crash(t, s)
	write(t, s.sum.JSONSummary, "{ torn")
	if _, err := Recover(s.sum.CSVLog, false); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), s.sum.JSONSummary) {
		t.Errorf("the error is %v", err)
	}
	if got := read(t, s.sum.JSONSummary); got != "{ torn" {
		t.Errorf("the summary is %q now", got)
	}
	recovered, err := Recover(dir, true) // the newest session
	must.OK(t, err)
	written, err := readSummary(s.sum.JSONSummary)
	must.OK(t, err)
	equal(t, &recovered.Summary, written)
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("the directory has %v", entries)
	}
}

func TestCSVTruncatedAtAnyByteIsReadUpToTheLastCompleteRow(t *testing.T) {
	rows := []string{
		"1.500000,cpu,w,1.000,1,0,op,True,0.00,\n",
		"1.600000,cpu,w,1.000,2,0,op,False,0.00,\"two\nlines, \"\"quoted\"\"\n\"\n",
		"1.700000,cpu,w,1.000,3,0,op,False,0.00,short\n",
	}
	for _, end := range []string{"\n", "\r\n"} {
		whole := strings.Join(rows, "")
		content := strings.ReplaceAll(headerLine+whole, "\n", end)
		ends := []int{len(strings.ReplaceAll(headerLine, "\n", end))}
		for _, row := range rows {
			ends = append(ends, ends[len(ends)-1]+len(strings.ReplaceAll(row, "\n", end)))
		}
		for at := range len(content) + 1 {
			want, boundary := 0, at == 0
			for i, e := range ends {
				if at >= e {
					want = i
				}
				boundary = boundary || at == e
			}
			got, skipped := 0, 0
			err := readRows(strings.NewReader(content[:at]), int64(at), func(*Row) { got++ }, func(SkippedRow) { skipped++ })
			must.OK(t, err)
			incomplete := 0
			if !boundary && at >= ends[0] {
				incomplete = 1
			}
			if d := cmp.Diff([]int{want, incomplete}, []int{got, skipped}); d != "" {
				t.Errorf("rows and incomplete rows of %q (-want +got):\n%s", content[:at], d)
			}
		}
	}
}

const crashDir = "SESSION_TEST_CRASH_DIR"

// The CSV of a killed program contains each packet whose Record returned.
func TestKilledProgramLosesNoRecordedPacket(t *testing.T) {
	if dir := os.Getenv(crashDir); dir != "" {
		recordUntilKilled(dir)
		return
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProgramLosesNoRecordedPacket$")
	child.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := child.StdoutPipe()
	must.OK(t, err)
	must.OK(t, child.Start())
	var last int64 // the last packet whose Record is known to have returned
	for lines := bufio.NewScanner(out); last < 500 && lines.Scan(); {
		if last, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	must.OK(t, child.Process.Kill())
	_ = child.Wait() // it was killed

	path := filepath.Join(dir, "crash.csv")
	rows := rowsOf(t, read(t, path))
	if int64(len(rows)) < last {
		t.Errorf("%d rows in the file, but %d packets were recorded", len(rows), last)
	}
	for i, r := range rows {
		if r.PacketID != int64(i+1) {
			t.Fatalf("row %d is packet %d's", i+1, r.PacketID)
		}
	}
	r, err := Recover(path, false)
	must.OK(t, err)
	equal(t, int64(len(rows)), r.Summary.TotalPackets)
}

// recordUntilKilled records packets and prints the ID of each recorded packet.
func recordUntilKilled(dir string) {
	s, err := Open(dir, WithName("crash"), WithMeterProvider(noop.NewMeterProvider()))
	for id := int64(1); err == nil; id++ {
		err = s.Record(context.Background(), Packet{ID: id, Operation: "embedding", Device: CPU})
		fmt.Println(id)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
