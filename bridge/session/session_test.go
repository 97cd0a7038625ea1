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

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestFilesAreNamedAfterTheSession(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	time.Local = time.FixedZone("east", 5*3600+1800)

	t.Run("local time", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "created", "by", "Open")
		s := openTest(t, dir, WithName(""))
		if want := "session_2025-11-17_05-34-29"; s.files.name != want {
			t.Errorf("the name is %s, want %s", s.files.name, want)
		}
		closeTest(t, s)
		for _, path := range []string{s.files.csv, s.files.json} {
			if !strings.HasPrefix(path, filepath.Join(dir, s.files.name+".")) {
				t.Errorf("%s is not in %s", path, dir)
			}
			read(t, path)
		}
	})
	t.Run("default directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		s := openTest(t, "")
		closeTest(t, s)
		read(t, "telemetry", "s.csv")
		if sum := s.Summary(); sum.CSVLog != filepath.Join("telemetry", "s.csv") || sum.JSONSummary != filepath.Join("telemetry", "s.json") {
			t.Errorf("the summary names %s and %s", sum.CSVLog, sum.JSONSummary)
		}
	})
}

func TestSessionsOfOneSecondHaveDifferentNames(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for range 12 {
		s := openTest(t, dir, WithName(""), withClock(func() time.Time { return epoch }))
		closeTest(t, s)
		names = append(names, s.Summary().SessionName)
	}
	if names[1] != names[0]+"_2" || names[11] != names[0]+"_12" {
		t.Errorf("the names are %q", names)
	}
}

// A clock that is set back and errors whose methods panic are mistakes of others.
func TestMistakesOfOthersDoNotPanic(t *testing.T) {
	now := epoch
	s := openTest(t, t.TempDir(), WithMeterProvider(nil), withClock(func() time.Time { return now }))
	recordAll(t, s, Packet{Operation: "lm_head", Device: CPU, Duration: time.Millisecond})
	now = epoch.Add(-time.Hour)
	recordAll(t, s, Packet{Operation: "lm_head", Device: CPU, Duration: time.Millisecond, Err: (*fs.PathError)(nil)})
	closeTest(t, s)
	if sum := s.Summary(); sum.TotalTimeS != 0 || sum.EndTime != sum.StartTime || sum.TotalPackets != 2 {
		t.Errorf("the summary is %+v", sum)
	}
}

func TestOpenNeverOverwrites(t *testing.T) {
	for _, existing := range []string{"s.csv", "s.json"} {
		t.Run(existing, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, existing), "precious")
			s, err := Open(dir, WithName("s"), WithMeterProvider(noop.NewMeterProvider()))
			if !errors.Is(err, fs.ErrExist) {
				t.Errorf("the error is %v", err)
			}
			for _, part := range []string{`session "s"`, filepath.Join(dir, existing), "another name"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q doesn't contain %q", err, part)
				}
			}
			if err := s.Close(); !errors.Is(err, fs.ErrExist) {
				t.Errorf("close: %v", err)
			}
			if got := read(t, dir, existing); got != "precious" {
				t.Errorf("the file is %q now", got)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("the directory has %v", entries)
			}
		})
	}
	t.Run("json created in the meantime", func(t *testing.T) {
		s := openTest(t, t.TempDir())
		write(t, s.files.json, "precious")
		if err := s.Close(); !errors.Is(err, fs.ErrExist) {
			t.Errorf("close: %v", err)
		}
		if got := read(t, s.files.json); got != "precious" {
			t.Errorf("the file is %q now", got)
		}
	})
}

func TestOpenRejectsInvalidFileNames(t *testing.T) {
	for _, name := range []string{"../escape", "a/b", "..", ".", "/abs"} {
		dir := t.TempDir()
		s, err := Open(dir, WithName(name), WithMeterProvider(noop.NewMeterProvider()))
		if err == nil || !strings.Contains(err.Error(), "without path separators") {
			t.Errorf("%q: the error is %v", name, err)
		}
		if closeErr := s.Close(); closeErr == nil || !strings.Contains(closeErr.Error(), err.Error()) {
			t.Errorf("%q: close: %v", name, closeErr)
		}
	}
}

// Such a link makes os.MkdirAll return fs.ErrExist, as a session of the same name does.
func TestDirectoryThatIsADanglingLinkIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "telemetry")
	must.OK(t, os.Symlink("unmounted", dir))
	opened := make(chan error)
	go func() {
		_, err := Open(dir, WithMeterProvider(noop.NewMeterProvider()))
		opened <- err
	}()
	select {
	case err := <-opened:
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), dir) {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Open doesn't return")
	}
}

func TestSummaryCountsExpertSelectionsByOperationAndLayer(t *testing.T) {
	s := openTest(t, t.TempDir())
	recordAll(
		t, s,
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 10, Expert: "7"}, // any expert
		Packet{Operation: "expert_ffn", Device: CPU, Layer: 10},               // on any device
		Packet{Operation: "expert_selection", Device: CPU, Layer: 2},
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 2, Err: textError("out of memory")},
		Packet{Operation: "attention_qkv_proj", Device: IGPU, Layer: 2, Expert: "7"},
	)
	want := map[string]int64{"expert_ffn_layer_10": 2, "expert_selection_layer_2": 1, "expert_ffn_layer_2": 1}
	equal(t, want, s.Summary().ExpertSelections)
}

func TestFailedPacketKeepsItsError(t *testing.T) {
	s := openTest(t, t.TempDir())
	cause := textError("level zero: device lost, code 0x70000001")
	recordAll(t, s, Packet{ID: 5, Operation: "lm_head", Device: IGPU, Err: errors.Join(cause, fs.ErrInvalid)})
	closeTest(t, s)
	report, err := Analyze(s.files.csv)
	must.OK(t, err)
	equal(t, cause.Error()+`\n`+fs.ErrInvalid.Error(), report.Failures[0].Error)
}

func TestNilSessionDoesNothing(t *testing.T) {
	var s *Session
	s.AddPromptTokens(t.Context(), 1)
	s.AddGeneratedTokens(t.Context(), 1)
	s.AddContentionEvents(t.Context(), 1)
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
			closeTest(t, s)
			before := read(t, s.files.csv)

			if err := s.Record(t.Context(), Packet{Operation: "embedding", Device: CPU}); !errors.Is(err, os.ErrClosed) {
				t.Errorf("record: %v", err)
			}
			s.AddPromptTokens(t.Context(), 1)
			s.AddGeneratedTokens(t.Context(), 1)
			s.AddContentionEvents(t.Context(), 1)
			closeTest(t, s) // closing twice is valid
			equal(t, before, read(t, s.files.csv))
			written, err := readSummary(s.files.json)
			must.OK(t, err)
			now := s.Summary()
			equal(t, written, &now)
		})
	}
}
