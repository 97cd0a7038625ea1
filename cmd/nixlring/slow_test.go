// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// transferred returns the events of a transfer that ended at a time.
func transferred(receive bool, bytes uint64, took, post time.Duration, at time.Time) []ringbuf.Event {
	var d ringbuf.Type
	if receive {
		d = 1
	}
	events := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, uint64(post.Microseconds())),
		ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(took.Microseconds())),
		ringbuf.NewEvent(ringbuf.TypeTxBytes+d, bytes),
		ringbuf.NewEvent(ringbuf.TypeTxRequests+d, 1),
	}
	for i := range events {
		events[i].TimestampMicros = uint64(at.UnixMicro())
	}
	return events
}

func pushed(t *testing.T, path string, layout ringbuf.Layout, transfers ...[]ringbuf.Event) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, layout, 4096)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	for _, events := range transfers {
		if n, err := w.PushBatch(events); err != nil || n < len(events) {
			t.Fatalf("pushed %d events: %v", n, err)
		}
	}
	return w
}

var (
	slowReading  = time.Date(2025, 1, 15, 14, 30, 25, 123_456_000, time.Local)
	slowRecorded = time.Date(2024, 2, 3, 4, 5, 6, 789_000, time.Local)
)

// slowRings creates a directory with two rings: decode has one slow transfer, and prefill has
// two, one of them with a low throughput.
func slowRings(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	pushed(t, filepath.Join(dir, "decode"), ringbuf.V1,
		transferred(false, 1000, time.Millisecond, 0, slowRecorded),
		transferred(true, 64<<20, 2100*time.Millisecond, 70*time.Microsecond, slowRecorded))
	pushed(t, filepath.Join(dir, "prefill"), ringbuf.V4,
		transferred(false, 1<<20, 250*time.Millisecond, 3*time.Millisecond, slowRecorded),
		transferred(false, 1<<20, 900*time.Microsecond, 3*time.Microsecond, slowRecorded),
		transferred(false, 7, 130*time.Second, 3*time.Second, slowRecorded))
	return dir
}

func TestSlowPrintsALineForEachSlowTransfer(t *testing.T) {
	dir := slowRings(t)
	before := contents(t, dir)
	r := nixlringAt(t.Context(), slowReading, "slow", dir, "--min-throughput", "1e9", "--duration", "1ms")
	want := `TIME                        DIRECTION      SIZE      TOOK      POST  THROUGHPUT  WHY             AGENT
2024-02-03 04:05:06.000789  receive     67.1 MB    2.10 s   70.0 µs   32.0 MB/s  slow_transfer   decode
2025-01-15 14:30:25.123456  transmit        7 B     130 s    3.00 s       0 B/s  slow_transfer   prefill
2025-01-15 14:30:25.123456  transmit    1.05 MB    250 ms   3.00 ms   4.19 MB/s  min_throughput  prefill
`
	// The order of the rings isn't defined.
	head, got, _ := strings.Cut(r.out, "\n")
	lines := slices.Sorted(strings.Lines(got))
	if d := cmp.Diff(want, head+"\n"+strings.Join(lines, "")); r.code != exitOK || d != "" {
		t.Errorf("exit code %d\n%s", r.code, d)
	}
	if want := "Slow transfers printed: 3, of 2 agents\n"; r.err != want {
		t.Errorf("notes are %q, want %q", r.err, want)
	}
	if d := cmp.Diff(before, contents(t, dir)); d != "" {
		t.Errorf("the rings were changed: %s", d)
	}
}

// contents returns the content of the files in a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	must.OK(t, err)
	all := make(map[string]string)
	for _, file := range files {
		b, err := os.ReadFile(file)
		must.OK(t, err)
		all[file] = string(b)
	}
	return all
}

func TestSlowPrintsJSON(t *testing.T) {
	dir := slowRings(t)
	r := nixlringAt(t.Context(), slowReading, "slow", dir, "--include", "decode", "-d", "1ms", "-o", "json")
	var got slowTransfer
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	want := slowTransfer{
		Path: filepath.Join(dir, "decode"), Agent: "decode", Speed: 31956601,
		Transfer: diagnose.Transfer{Time: slowRecorded, Receive: true, Bytes: 64 << 20, Took: 2.1, Post: 70e-6, Cause: "slow_transfer"},
	}
	if d := cmp.Diff(want, got); r.code != exitOK || d != "" {
		t.Errorf("%d, %q: %s", r.code, r.err, d)
	}
}

// lines is a writer that sends each line to a channel.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func (l lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l:
		return line
	case <-time.After(30 * time.Second):
		t.Fatal("no output")
		return ""
	}
}

func TestSlowFollowsNewAgentsUntilASignal(t *testing.T) {
	dir := t.TempDir()
	first := pushed(t, filepath.Join(dir, "first"), ringbuf.V4)
	out, done := make(lines, 100), make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		done <- run(ctx, world{out: out, err: io.Discard, now: time.Now}, []string{"slow", dir, "--slow-transfer", "10ms", "--include", "**"})
	}()
	out.next(t) // the head
	slow := transferred(false, 1000, 11*time.Millisecond, 0, time.Now())
	for range 2 {
		if n, err := first.PushBatch(slow); err != nil || n != len(slow) {
			t.Fatalf("pushed %d events: %v", n, err)
		}
		if line := out.next(t); !strings.HasSuffix(line, " first\n") {
			t.Errorf("%q", line)
		}
	}
	must.OK(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	pushed(t, filepath.Join(dir, "sub", "second"), ringbuf.V3, slow)
	if line := out.next(t); !strings.HasSuffix(line, " sub/second\n") {
		t.Errorf("%q", line)
	}
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// failing is a source whose second and third frame fail.
type failing struct {
	fleet.Source

	taken int
}

func (f *failing) Next(context.Context) (*diagnose.Frame, error) {
	switch f.taken++; f.taken {
	case 1, 4:
		return &diagnose.Frame{Agents: make([]diagnose.Agent, 2)}, nil
	case 2, 3:
		return nil, errors.New("it hangs")
	}
	return nil, io.EOF
}

func TestSlowReportsAFailureOnceAndContinues(t *testing.T) {
	var errs strings.Builder
	must.OK(t, new(slowFlags).follow(t.Context(), world{out: io.Discard, err: &errs}, &failing{}))
	if diff := cmp.Diff("it hangs\nSlow transfers printed: 0, of 2 agents\n", errs.String()); diff != "" {
		t.Error(diff)
	}
	if err := new(slowFlags).follow(t.Context(), world{out: io.Discard}, &failing{taken: 1}); err == nil {
		t.Error("without a first frame, there is no error")
	}
}
