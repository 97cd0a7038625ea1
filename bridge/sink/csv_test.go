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
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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

// Events are appended to an existing file without another header.
func TestEachEventIsARowWhenWriteReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.csv")
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", path)
	want := header
	for range 3 {
		c, err := sink.OpenCSVFromEnv()
		must.OK(t, err)
		for _, batch := range []struct {
			events []sink.Event
			rows   string
		}{
			{nil, ""},
			{[]sink.Event{event(ringbuf.CategoryTransfer, "agent_tx_bytes", 1<<20)}, "1736951425123456,1,agent_tx_bytes,1048576\n"},
			{
				[]sink.Event{event(12, "agent_err_backend", 1), event(-1, "unknown_event_21", 1<<64-1)},
				"1736951425123456,12,agent_err_backend,1\n1736951425123456,-1,unknown_event_21,18446744073709551615\n",
			},
		} {
			write(t, c, batch.events...)
			if want += batch.rows; read(t, path) != want {
				t.Errorf("the file is\n%s\nwant\n%s", read(t, path), want)
			}
		}
		must.OK(t, errors.Join(c.Close(), c.Close()))
		if err := c.Write([]sink.Event{event(0, "x", 1)}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close: %v", err)
		}
	}
}

func TestErrorsNameTheFileAndTheVariable(t *testing.T) {
	dir := t.TempDir()
	const full = "/dev/full" // the header can't be written
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "events.csv"): "CSV sink: open " + dir + "/none/events.csv: no such file",
		dir:                                      "CSV sink: open " + dir + ": is a directory",
		full:                                     "CSV sink: write " + full + ": no space left",
		"":                                       "isn't set",
	} {
		t.Setenv("NIXL_TELEMETRY_CSV_FILE", path)
		if _, err := sink.OpenCSVFromEnv(); err == nil || !strings.HasPrefix(err.Error(), "NIXL_TELEMETRY_CSV_FILE") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	must.OK(t, err)
	for _, fd := range fds {
		if file, _ := os.Readlink(fd); file == full {
			t.Errorf("%s stays open", full)
		}
	}
	if _, err := sink.OpenCSV(""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A program whose file can't be opened may log the error and pass the nil CSV on.
func TestNilCSVDiscardsEvents(t *testing.T) {
	var c *sink.CSV
	must.OK(t, errors.Join(c.Write([]sink.Event{event(0, "x", 1)}), c.Close()))
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
	limit(uint64(len(header) + 1)) // within the first row
	row := event(ringbuf.CategoryError, "agent_err_backend", 1)
	for range 2 { // the second time, nothing is written
		if err := c.Write([]sink.Event{row, row}); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("the error is %v", err)
		}
	}
	limit(math.MaxUint64)
	write(t, c, row)
	write(t, c, row)
	const whole = "1736951425123456,4,agent_err_backend,1\n"
	if got, want := read(t, path), header+whole[:1]+"\n"+whole+whole; got != want {
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
