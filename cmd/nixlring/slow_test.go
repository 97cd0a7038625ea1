// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// transferred returns the events of a transfer that ended at a time.
func transferred(bytes uint64, took, post time.Duration, at time.Time) []ringbuf.Event {
	events := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, uint64(post.Microseconds())),
		ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(took.Microseconds())),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, bytes),
		ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
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
	slow := transferred(1000, 11*time.Millisecond, 0, time.Now())
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

// A ring of layout v1 has the times that its agent writes, which may be any.
func TestATimeBeyondTheYear9999EndsNoOutput(t *testing.T) {
	dir := t.TempDir()
	pushed(t, filepath.Join(dir, "a"), ringbuf.V1, transferred(1000, time.Second, 0, time.UnixMicro(1<<60)))
	pushed(t, filepath.Join(dir, "b"), ringbuf.V1, transferred(1000, time.Second, 0, time.UnixMicro(1_736_951_425_123_456)))
	for _, args := range [][]string{{"slow", "-d", "1ms", "--slow-transfer", "1ms"}, {"top", "--window", "10ms"}} {
		r := nixlring(t.Context(), nil, append(args, dir, "-o", "json")...)
		if r.code != exitOK || !strings.Contains(r.out, "/a") || !strings.Contains(r.out, "/b") {
			t.Errorf("%+v", r)
		}
	}
}

// minutes is a source of frames in the past, a minute apart, with a transfer each.
type minutes struct {
	fleet.Source

	taken int
}

func (f *minutes) Next(context.Context) (*diagnose.Frame, error) {
	f.taken++
	at := time.UnixMicro(1_736_951_425_000_000).Add(time.Duration(f.taken) * time.Minute)
	return &diagnose.Frame{Time: at, Agents: []diagnose.Agent{{Transfers: []diagnose.Transfer{{Time: at, Took: 1}}}}}, nil
}

func TestSlowEndsAtARecordedTime(t *testing.T) {
	var out strings.Builder
	f := slowFlags{watchFlags: watchFlags{recorded: true}, duration: 10 * time.Minute, output: &output{value: "text"}}
	must.OK(t, f.follow(t.Context(), world{out: &out, err: io.Discard}, new(minutes)))
	if n := strings.Count(out.String(), "\n"); n != 11 {
		t.Errorf("%d transfers in the first frame and ten minutes", n)
	}
}
