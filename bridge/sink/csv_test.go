// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sink_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = "timestamp_us,category,event_name,value\n"

// at is the time of the tests' events.
var at = time.UnixMicro(1_736_951_425_123_456)

func event(c ringbuf.Category, name string, value uint64) sink.Event {
	return sink.Event{Agent: "a", Time: at, Category: c, Name: name, Value: value}
}

func open(t *testing.T, path string) *sink.CSV {
	t.Helper()
	c, err := sink.OpenCSV(path)
	must.OK(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func write(t *testing.T, c *sink.CSV, events ...sink.Event) {
	t.Helper()
	must.OK(t, c.Write(events))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	return string(b)
}

// Programs that open an empty file at once write the header only once.
func TestConcurrentOpensWriteOneHeader(t *testing.T) {
	dir := t.TempDir()
	for i := range 500 {
		path := filepath.Join(dir, fmt.Sprint(i))
		start := make(chan struct{})
		var opens sync.WaitGroup
		for range 2 {
			opens.Go(func() {
				<-start
				c, err := sink.OpenCSV(path)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.Close()
			})
		}
		close(start)
		opens.Wait()
		if got := read(t, path); got != header {
			t.Fatalf("file %d: %q", i, got)
		}
	}
}

func TestEachEventIsARowWhenWriteReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.csv")
	c := open(t, path)
	if got := read(t, path); got != header {
		t.Errorf("initially, the file is %q", got)
	}
	write(t, c, event(ringbuf.CategoryTransfer, "agent_tx_bytes", 1<<20))
	want := header + "1736951425123456,1,agent_tx_bytes,1048576\n"
	if got := read(t, path); got != want {
		t.Errorf("after one row, the file is\n%s", got)
	}
	write(t, c)
	write(t, c, event(ringbuf.CategoryError, "agent_err_backend", 1), event(-1, "unknown_event_21", 1<<64-1))
	want += "1736951425123456,4,agent_err_backend,1\n1736951425123456,-1,unknown_event_21,18446744073709551615\n"
	if got := read(t, path); got != want {
		t.Errorf("after three rows, the file is\n%s", got)
	}
}

// Events are appended to an existing file without another header.
func TestHeaderIsWrittenOncePerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.csv")
	for range 3 {
		c := open(t, path)
		write(t, c, event(ringbuf.CategoryMemory, "agent_memory_registered", 1))
		must.OK(t, c.Close())
	}
	want := header + strings.Repeat("1736951425123456,0,agent_memory_registered,1\n", 3)
	if got := read(t, path); got != want {
		t.Errorf("the file is\n%s", got)
	}
}

func TestOpenCSVFromEnvNamesTheVariableInErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.csv")
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", path)
	c, err := sink.OpenCSVFromEnv()
	must.OK(t, err)
	must.OK(t, c.Close())
	if got := read(t, path); got != header {
		t.Errorf("the file is %q", got)
	}

	t.Setenv("NIXL_TELEMETRY_CSV_FILE", "")
	if _, err := sink.OpenCSVFromEnv(); err == nil || !strings.Contains(err.Error(), "NIXL_TELEMETRY_CSV_FILE isn't set") {
		t.Errorf("without the variable: %v", err)
	}
	missing := filepath.Join(path, "under a file")
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", missing)
	_, err = sink.OpenCSVFromEnv()
	if err == nil || !strings.Contains(err.Error(), "NIXL_TELEMETRY_CSV_FILE: CSV sink: open "+missing) {
		t.Errorf("with an invalid path: %v", err)
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"no directory": filepath.Join(dir, "none", "events.csv"),
		"a directory":  dir,
		"no name":      "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sink.OpenCSV(path)
			if err == nil || !strings.HasPrefix(err.Error(), "CSV sink: open "+path) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := sink.OpenCSV(filepath.Join(dir, "none", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	c := open(t, filepath.Join(dir, "closed.csv"))
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.Write([]sink.Event{event(0, "x", 1)}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

// A program whose file can't be opened may log the error and pass the nil CSV on.
func TestNilCSVDiscardsEvents(t *testing.T) {
	var c *sink.CSV
	must.OK(t, errors.Join(c.Write([]sink.Event{event(0, "x", 1)}), c.Close()))
}

func TestFullDiskIsAnErrorThatNamesTheFile(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(full, "doesn't exist")
	}
	if c, err := sink.OpenCSV(full); err == nil {
		t.Error("no error for a header that can't be written", c.Close())
	} else if !strings.Contains(err.Error(), full) {
		t.Errorf("error %v", err)
	}
}

const fullDisk = "SINK_TEST_FULL_DISK"

// A file size limit simulates a disk that fills up within a row and later has room again. It applies
// to the whole process, so the test uses a child process.
func TestBatchAfterAFullDiskStartsOnANewLine(t *testing.T) {
	path := os.Getenv(fullDisk)
	if path == "" {
		path = filepath.Join(t.TempDir(), "events.csv")
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBatchAfterAFullDiskStartsOnANewLine$")
		child.Env = append(os.Environ(), fullDisk+"="+path)
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	c := open(t, path)
	limit := func(size uint64) {
		var l syscall.Rlimit
		must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l))
		l.Cur = min(size, l.Max)
		must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l))
	}
	limit(uint64(len(header) + 20)) // within the first row
	row := event(ringbuf.CategoryError, "agent_err_backend", 1)
	if err := c.Write([]sink.Event{row, row}); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("the error is %v", err)
	}
	limit(math.MaxUint64)
	write(t, c, row)
	write(t, c, row)
	const whole = "1736951425123456,4,agent_err_backend,1\n"
	if got, want := read(t, path), header+whole[:20]+"\n"+whole+whole; got != want {
		t.Errorf("the file is\n%s", got)
	}
}

func TestConcurrentBatchesAreNotMixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.csv")
	sinks := []*sink.CSV{open(t, path), open(t, path)} // as in two programs
	const goroutines, batches, size = 4, 50, 7
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range batches {
				batch := make([]sink.Event, size)
				for i := range batch {
					batch[i] = event(ringbuf.CategoryCustom, fmt.Sprint("name ", g), uint64(i))
				}
				if err := sinks[g%2].Write(batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rows, err := csv.NewReader(strings.NewReader(read(t, path))).ReadAll()
	must.OK(t, err)
	if want := 1 + goroutines*batches*size; len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	for i, row := range rows[1:] {
		if row[3] != fmt.Sprint(i%size) {
			t.Fatalf("row %d is %q: batches are mixed", i, row)
		}
	}
}
