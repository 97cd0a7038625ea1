// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Sessions within a second have different names. The files have the usual permissions.
func TestFilesAreNamedAfterTheLocalTime(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	time.Local = time.FixedZone("east", 5*3600+1800)
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	must.OK(t, err)
	usual, err := file.Stat()
	must.OK(t, errors.Join(err, file.Close()))
	dir := filepath.Join(t.TempDir(), "created", "by", "Open")
	for i := range 12 {
		want := "session_2025-11-17_05-34-29"
		if i > 0 {
			want += fmt.Sprint("_", i+1)
		}
		s := openTest(t, dir, WithName(""), withClock(func() time.Time { return epoch }))
		must.OK(t, s.Close())
		sum := s.Summary()
		equal(t, []string{want, filepath.Join(dir, want+".csv"), filepath.Join(dir, want+".json")}, []string{sum.SessionName, sum.CSVLog, sum.JSONSummary})
		for _, path := range []string{sum.CSVLog, sum.JSONSummary} {
			info, err := os.Stat(path)
			must.OK(t, err)
			equal(t, usual.Mode(), info.Mode())
		}
	}
}

// A clock that is set back and errors whose methods panic are mistakes of others.
func TestMistakesOfOthersDoNotPanic(t *testing.T) {
	now := epoch
	s := openTest(t, t.TempDir(), WithMeterProvider(nil), withClock(func() time.Time { return now }))
	recordAll(t, s, Packet{Operation: "lm_head", Device: CPU, Duration: time.Millisecond})
	now = epoch.Add(-time.Hour)
	recordAll(t, s, Packet{Operation: "lm_head", Device: CPU, Duration: time.Millisecond, Err: (*fs.PathError)(nil)})
	must.OK(t, s.Close())
	if sum := s.Summary(); sum.TotalTimeS != 0 || sum.EndTime != sum.StartTime || sum.TotalPackets != 2 {
		t.Errorf("the summary is %+v", sum)
	}
}

// The session still records metrics. It never overwrites a file.
func TestFilesThatCannotBeCreatedAreAnErrorOfEachCall(t *testing.T) {
	for name, c := range map[string]struct {
		dir, name string
		want      error // nil for any
		text      string
	}{
		"CSV exists":                   {".", "old", fs.ErrExist, "old.csv: file exists; choose another name or move the file"},
		"summary exists":               {".", "other", fs.ErrExist, "other.json: file already exists; choose another name or move the file"},
		"directory is a file":          {"old.csv", "s", syscall.ENOTDIR, "old.csv"}, // not even root can create it
		"directory is a dangling link": {"dangling", "", fs.ErrExist, "dangling"},    // os.MkdirAll returns fs.ErrExist
		"parent":                       {".", "../escape", nil, "without path separators"},
		"subdirectory":                 {".", "a/b", nil, "without path separators"},
		"..":                           {".", "..", nil, "without path separators"},
		".":                            {".", ".", nil, "without path separators"},
		"absolute":                     {".", "/abs", nil, "without path separators"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			for _, file := range []string{"old.csv", "other.json"} {
				write(t, filepath.Join(base, file), "precious")
			}
			must.OK(t, os.Symlink("unmounted", filepath.Join(base, "dangling")))
			reader := sdkmetric.NewManualReader()
			s, err := Open(filepath.Join(base, c.dir), WithName(c.name), WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
			for _, err := range []error{err, s.Record(t.Context(), Packet{Operation: "embedding", Device: CPU}), s.Close()} {
				if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
					t.Errorf("the error is %v", err)
				}
			}
			equal(t, []int64{1, 1}, []int64{packetsCounted(t, reader), s.Summary().TotalPackets})
			equal(t, []string{"precious", "precious"}, []string{read(t, base, "old.csv"), read(t, base, "other.json")})
			if entries, _ := os.ReadDir(base); len(entries) != 3 {
				t.Errorf("the directory has %v", entries)
			}
		})
	}
}

func TestCloseDoesNotOverwriteASummary(t *testing.T) {
	s := openTest(t, t.TempDir())
	write(t, s.sum.JSONSummary, "precious")
	if err := s.Close(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("close: %v", err)
	}
	equal(t, "precious", read(t, s.sum.JSONSummary))
}

func TestNilSessionDoesNothing(t *testing.T) {
	var s *Session
	s.AddPromptTokens(t.Context(), 1)
	s.AddGeneratedTokens(t.Context(), 1)
	s.AddContentionEvents(1)
	err := errors.Join(s.Record(t.Context(), Packet{Err: textError("x")}), s.Close())
	if err != nil {
		t.Error(err)
	}
	equal(t, Summary{}, s.Summary())
}

// A clock may begin at the zero time, as that of a simulation.
func TestClosedSessionRejectsPackets(t *testing.T) {
	for name, clock := range map[string]func() time.Time{
		"ticking": ticking(time.Millisecond), "at the zero time": func() time.Time { return time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, t.TempDir(), withClock(clock))
			recordAll(t, s, Packet{Operation: "embedding", Device: CPU})
			must.OK(t, s.Close())
			before := read(t, s.sum.CSVLog)

			if err := s.Record(t.Context(), Packet{Operation: "embedding", Device: CPU}); !errors.Is(err, os.ErrClosed) {
				t.Errorf("record: %v", err)
			}
			s.AddPromptTokens(t.Context(), 1)
			s.AddGeneratedTokens(t.Context(), 1)
			s.AddContentionEvents(1)
			must.OK(t, s.Close()) // closing twice is valid
			equal(t, before, read(t, s.sum.CSVLog))
			written, err := readSummary(s.sum.JSONSummary)
			must.OK(t, err)
			now := s.Summary()
			equal(t, written, &now)
		})
	}
}

func TestFilesRotateAtTheirMaximumSize(t *testing.T) {
	for keep, want := range map[int][]string{0: {"s.1.csv", "s.2.csv", "s.3.csv", "s.5.csv", "s.csv"}, 2: {"s.3.csv", "s.5.csv", "s.csv"}} {
		dir := t.TempDir()
		const perFile = 4
		row := appendRow(nil, &Row{Time: epoch, Device: CPU, Worker: "cpu_op", Operation: "op", Success: true})
		limit := int64(len(headerLine) + perFile*len(row))
		s := openTest(t, dir, WithMaxFileSize(limit, keep))
		taken := partPath(s.sum.CSVLog, 4) // of another session
		write(t, taken, "precious")
		for i := range 4*perFile + 1 {
			recordAll(t, s, Packet{ID: int64(i % 10), Operation: "op", Device: CPU})
		}
		equal(t, "precious", read(t, taken))
		must.OK(t, os.Remove(taken))
		if _, err := Recover(s.sum.CSVLog, false); err == nil || !strings.Contains(err.Error(), "still running") {
			t.Errorf("Recover of a running session: %v", err)
		}
		must.OK(t, s.Close())
		equal(t, int64(4*perFile+1), s.Summary().TotalPackets)
		files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
		must.OK(t, err)
		rows := 0
		for i, f := range files {
			content := read(t, f)
			if int64(len(content)) > limit {
				t.Errorf("%s has %d bytes", f, len(content))
			}
			rows += len(rowsOf(t, content))
			files[i] = filepath.Base(f)
		}
		equal(t, want, files)
		r, err := Recover(s.sum.CSVLog, true)
		must.OK(t, err)
		equal(t, []int64{int64(perFile*(len(want)-1) + 1), int64(rows)}, []int64{r.Summary.TotalPackets, r.Summary.TotalPackets})
	}
}

// A row that is longer than a file gets a file of its own.
func TestFileHasAtLeastOneRow(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, WithMaxFileSize(1, 0))
	recordAll(t, s, Packet{Operation: "op"}, Packet{Operation: "op"})
	must.OK(t, s.Close())
	equal(t, []int{1, 1}, []int{len(rowsOf(t, read(t, dir, "s.1.csv"))), len(rowsOf(t, read(t, dir, "s.csv")))})
}

// The rows stay in the old file, and the session tries again after another limit's bytes.
func TestRowsAreWrittenWhenAFileCannotBeRotated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "telemetry")
	s := openTest(t, dir, WithMaxFileSize(500, 0))
	moved := dir + "-moved"
	must.OK(t, os.Rename(dir, moved))
	failed := 0
	for range 20 {
		if err := s.Record(t.Context(), Packet{Operation: "op", Device: CPU}); errors.Is(err, fs.ErrNotExist) {
			failed++
		}
	}
	equal(t, 20, len(rowsOf(t, read(t, moved, "s.csv"))))
	if failed < 1 || failed > 3 {
		t.Errorf("%d errors of 20 rows", failed)
	}
	must.OK(t, os.Rename(moved, dir))
	for range 20 {
		_ = s.Record(t.Context(), Packet{Operation: "op", Device: CPU})
	}
	must.OK(t, s.Close())
	r, err := Analyze(s.sum.CSVLog)
	must.OK(t, err)
	equal(t, int64(40), r.Summary.TotalPackets)
}

func TestSessionWithoutFilesRecordsMetrics(t *testing.T) {
	t.Chdir(t.TempDir())
	reader := sdkmetric.NewManualReader()
	s := openTest(t, "", WithoutFiles(), WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	recordAll(t, s, Packet{Operation: "op", Device: CPU, Duration: time.Millisecond})
	must.OK(t, s.Close())
	sum := s.Summary()
	equal(t, []any{"s", "", "", int64(1), 1.0, int64(1)}, []any{sum.SessionName, sum.CSVLog, sum.JSONSummary, sum.TotalPackets, sum.TotalCPUTimeMS, packetsCounted(t, reader)})
	if entries, _ := os.ReadDir("."); len(entries) > 0 {
		t.Errorf("files %v", entries)
	}
}
