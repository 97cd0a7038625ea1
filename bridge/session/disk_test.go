// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// fullAfterHeader is a file on a disk that only has room for the header: it redirects
// further writes to /dev/full.
type fullAfterHeader struct {
	*os.File
	full *os.File
	used bool
}

func (f *fullAfterHeader) Write(b []byte) (int, error) {
	if f.used {
		return f.full.Write(b)
	}
	f.used = true
	return f.File.Write(b)
}

func (f *fullAfterHeader) Close() error { return errors.Join(f.File.Close(), f.full.Close()) }

func onFullDisk(t *testing.T) Option {
	t.Helper()
	return optionFunc(func(c *config) {
		c.create = func(path string) (file, error) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
			if err != nil {
				return nil, err
			}
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				return nil, err
			}
			return &fullAfterHeader{File: f, full: full}, nil
		}
	})
}

func TestFullDiskIsAnErrorOfEachCallAndOfClose(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	s := openTest(t, t.TempDir(), onFullDisk(t),
		WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	for id := range int64(10) {
		err := s.Record(t.Context(), Packet{ID: id, Operation: "embedding", Device: CPU, Duration: time.Millisecond})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("packet %d: %v", id, err)
		}
	}
	if got := packetsCounted(t, reader); got != 10 {
		t.Errorf("metrics have %d packets, want all 10", got)
	}
	err := s.Close()
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "10 rows are missing in "+s.files.csv) {
		t.Errorf("close: %v", err)
	}
	if again := s.Close(); again.Error() != err.Error() {
		t.Errorf("second Close: %v", again)
	}
	// The disk isn't full for the file of the summary.
	written, err := readSummary(s.files.json)
	if err != nil || written.TotalPackets != 10 {
		t.Errorf("summary: %+v, %v", written, err)
	}
}

func TestFilesThatCannotBeCreatedAreAnErrorOfEachCall(t *testing.T) {
	base := filepath.Join(t.TempDir(), "file")
	write(t, base, "")
	fullDisk := optionFunc(func(c *config) {
		c.create = func(path string) (file, error) {
			f, err := createFile(path)
			if err != nil {
				return nil, err
			}
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			return full, errors.Join(err, f.Close())
		}
	})
	for name, c := range map[string]struct {
		dir  string
		opt  Option
		want error
	}{
		"full disk":            {t.TempDir(), fullDisk, syscall.ENOSPC},
		"unwritable directory": {filepath.Join(base, "telemetry"), nil, syscall.ENOTDIR}, // not even root can create it
	} {
		t.Run(name, func(t *testing.T) {
			reader := sdkmetric.NewManualReader()
			s, err := Open(c.dir, WithName("s"), WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))), c.opt)
			if !errors.Is(err, c.want) {
				t.Errorf("open: %v", err)
			}
			for range 3 {
				if err := s.Record(t.Context(), Packet{Operation: "embedding", Device: CPU}); !errors.Is(err, c.want) {
					t.Errorf("record: %v", err)
				}
			}
			if got := packetsCounted(t, reader); got != 3 || s.Summary().TotalPackets != 3 {
				t.Errorf("metrics have %d packets and the summary %d, want 3", got, s.Summary().TotalPackets)
			}
			if err := s.Close(); !errors.Is(err, c.want) {
				t.Errorf("close: %v", err)
			}
			if entries, _ := os.ReadDir(c.dir); len(entries) != 0 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

func TestCloseReturnsAnErrorIfTheDirectoryWasRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "telemetry")
	s := openTest(t, dir)
	recordAll(t, s, Packet{Operation: "embedding", Device: CPU})
	must.OK(t, os.RemoveAll(dir))
	if err := s.Close(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.files.json) {
		t.Errorf("close: %v", err)
	}
}

const quotaDir = "SESSION_TEST_QUOTA_DIR"

// A file size limit simulates a disk that fills up in the middle of a row and later
// has room again. The limit applies to the whole process, so the test uses a child
// process.
func TestRowsAreCompleteWhenADiskFillsUpAndHasRoomAgain(t *testing.T) {
	if dir := os.Getenv(quotaDir); dir != "" {
		fillUp(t, dir)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRowsAreCompleteWhenADiskFillsUpAndHasRoomAgain$", "-test.v")
	child.Env = append(os.Environ(), quotaDir+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fillUp(t *testing.T, dir string) {
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
		content := read(t, s.files.csv)
		if rows := rowsOf(t, content); int64(len(rows)) != id+1-failed || !strings.HasSuffix(content, "\n") {
			t.Fatalf("after packet %d the file is:\n%s", id, content)
		}
	}
	limitFiles(t, math.MaxUint64)
	recordAll(t, s, Packet{ID: id, Operation: "embedding", Device: CPU})
	rows := rowsOf(t, read(t, s.files.csv))
	if last := rows[len(rows)-1].PacketID; last != id {
		t.Errorf("the last row is packet %d's, want %d", last, id)
	}
	if err := s.Close(); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "5 rows are missing") {
		t.Errorf("close: %v", err)
	}
	if got := s.Summary().TotalPackets; got != id+1 {
		t.Errorf("the summary has %d packets, want %d", got, id+1)
	}
}

func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	var limit syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	limit.Cur = min(size, limit.Max)
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
}
