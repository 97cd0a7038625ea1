// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestCloseReturnsAnErrorIfTheDirectoryWasRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "telemetry")
	s := openTest(t, dir)
	recordAll(t, s, Packet{Operation: "embedding", Device: CPU})
	must.OK(t, os.RemoveAll(dir))
	if err := s.Close(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.sum.JSONSummary) {
		t.Errorf("close: %v", err)
	}
}

const quotaDir = "SESSION_TEST_QUOTA_DIR"

// A file size limit simulates a disk that fills up in the middle of a row and later
// has room again. The limit applies to the whole process, so the test uses a child
// process.
func TestRowsAreCompleteWhenADiskFillsUpAndHasRoomAgain(t *testing.T) {
	dir := os.Getenv(quotaDir)
	if dir == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRowsAreCompleteWhenADiskFillsUpAndHasRoomAgain$", "-test.v")
		child.Env = append(os.Environ(), quotaDir+"="+t.TempDir())
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	s := openTest(t, dir)
	const room = 1000
	limitFiles(t, room)
	var failed int64
	id := int64(0)
	for ; failed < 5; id++ {
		if err := s.Record(t.Context(), Packet{ID: id, Operation: "embedding", Device: CPU}); err != nil {
			failed++
			if !errors.Is(err, syscall.EFBIG) {
				t.Errorf("packet %d: %v", id, err)
			}
		}
		content := read(t, s.sum.CSVLog)
		if rows := rowsOf(t, content); int64(len(rows)) != id+1-failed || !strings.HasSuffix(content, "\n") {
			t.Fatalf("after packet %d the file is:\n%s", id, content)
		}
	}
	limitFiles(t, math.MaxUint64)
	recordAll(t, s, Packet{ID: id, Operation: "embedding", Device: CPU})
	rows := rowsOf(t, read(t, s.sum.CSVLog))
	if last := rows[len(rows)-1].PacketID; last != id {
		t.Errorf("the last row is packet %d's, want %d", last, id)
	}
	if err := s.Close(); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), ": 5, first error: ") {
		t.Errorf("close: %v", err)
	}
	if got := s.Summary().TotalPackets; got != id+1 {
		t.Errorf("the summary has %d packets, want %d", got, id+1)
	}

	// No part of a header or of a summary stays, so that they can be written later.
	closed := openTest(t, dir, WithName("closed"))
	limitFiles(t, 10)
	_, err := Open(dir, WithName("opened"), WithMeterProvider(noop.NewMeterProvider()))
	for _, err := range []error{err, closed.Record(t.Context(), Packet{}), closed.Close()} {
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("without room: %v", err)
		}
	}
	if err := closed.Close(); !strings.Contains(err.Error(), ": 1, first error: ") {
		t.Errorf("close without room: %v", err)
	}
	entries, err := os.ReadDir(dir)
	must.OK(t, err)
	equal(t, "[- closed.csv - s.csv - s.json]", fmt.Sprint(entries))
}

func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	var limit syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	limit.Cur = min(size, limit.Max)
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
}
