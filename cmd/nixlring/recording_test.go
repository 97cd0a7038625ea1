// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/golden"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// recordingOf writes a recording of six agents.
func recordingOf(t *testing.T, write func(w *recording.Writer, start time.Time)) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agents.jsonl.zst")
	out, err := os.Create(file)
	must.OK(t, err)
	start := time.UnixMicro(1_736_951_425_000_000)
	w, err := recording.NewWriter(out, recording.Header{Tool: "test", Host: "gpu-7", Start: start})
	must.OK(t, err)
	for n := range 6 {
		name := fmt.Sprintf("agent-%d", n)
		must.OK(t, w.Open(start, n, recording.About{
			Name: name, Path: "/run/nixl/" + name, Attributes: map[string]string{"k8s.pod.name": fmt.Sprintf("pod-%d", n)},
		}, ringbuf.V4, 64))
	}
	write(w, start)
	must.OK(t, errors.Join(w.Close(start), out.Close()))
	return file
}

// stragglerFile writes a recording of six agents with 20 transfers per second for 20 seconds. The
// transfers of one of them take ten times as long. Then change may write more.
func stragglerFile(t *testing.T, change func(w *recording.Writer, end time.Time)) string {
	t.Helper()
	return recordingOf(t, func(w *recording.Writer, at time.Time) {
		for range 400 {
			at = at.Add(50 * time.Millisecond)
			for n := range 6 {
				took := 100 * time.Microsecond
				if n == 3 {
					took *= 10
				}
				b, err := ringbuf.MakeBatch(ringbuf.V4, transferred(1<<20, took, 10*time.Microsecond, at))
				must.OK(t, err)
				must.OK(t, w.Events(at, n, b))
			}
		}
		if change != nil {
			change(w, at)
		}
	})
}

func TestWhyOfARecordingMatchesTheGoldenFile(t *testing.T) {
	unread := recordingOf(t, func(w *recording.Writer, start time.Time) {
		for n := range 6 {
			must.OK(t, w.State(start, n, recording.Full))
		}
	})
	slow, full, idle := stragglerFile(t, nil), stragglerFile(t, func(w *recording.Writer, end time.Time) {
		must.OK(t, w.State(end, 2, recording.Full))
		must.OK(t, w.State(end, 4, recording.Full))
		must.OK(t, w.State(end, 5, recording.Closed))
	}), recordingOf(t, func(w *recording.Writer, start time.Time) {
		must.OK(t, w.Tick(start.Add(20*time.Second)))
	})
	var got messages // both streams
	for _, args := range [][]string{
		{full},
		{slow, "--include", "agent-[0145]"},
		{slow, "--include", "agent-[03]"}, // too few to say which of them is normal
		{idle},
		{unread},
		{slow, "--include", "agent-[015]", "-o", "json"},
	} {
		fmt.Fprintf(&got, "$ nixlring why %s\n", strings.Join(args, " "))
		code := run(t.Context(), world{out: &got, err: &got, env: lookup(nil)}, append([]string{"why"}, args...))
		fmt.Fprintf(&got, "[exit code %d]\n\n", code)
	}
	golden.Compare(t, *update, "why_recording.txt", strings.NewReplacer(slow, "slow.jsonl.zst", full, "full.jsonl.zst", unread, "unread.jsonl.zst", idle, "idle.jsonl.zst").Replace(got.String()))
}

// The step must grow with the length, or else this takes years.
func TestWhyReadsARecordingOfManyYears(t *testing.T) {
	file := stragglerFile(t, func(w *recording.Writer, end time.Time) {
		for year := range 200 {
			must.OK(t, w.State(end.AddDate(year, 0, 0), 0, recording.Missed))
		}
	})
	if r := nixlring(t.Context(), nil, "why", file); r.code != exitOK || !strings.Contains(r.out, "6 agents") {
		t.Errorf("%+v", r)
	}
}

func TestWhyExplainsATruncatedRecordingWithAWarning(t *testing.T) {
	file := stragglerFile(t, nil)
	info, err := os.Stat(file)
	must.OK(t, err)
	must.OK(t, os.Truncate(file, info.Size()-1)) // the last block ends before
	r := nixlring(t.Context(), nil, "why", file)
	if r.code != exitError || !strings.Contains(r.out, "Warning: truncated recording: it ends after line ") || !strings.Contains(r.out, "pod-3/agent-3") {
		t.Errorf("%+v", r)
	}
}

func TestTopPrintsTheEndOfARecording(t *testing.T) {
	r := nixlring(t.Context(), nil, "top", stragglerFile(t, nil), "-o", "json")
	if list := framesOf(t, r); len(list) != 2 || list[1].Agents[3].Moved[0].Transfers != 400 {
		t.Errorf("%+v", r)
	}
}

func TestSlowPrintsTheTransfersOfARecording(t *testing.T) {
	r := nixlring(t.Context(), nil, "slow", stragglerFile(t, nil), "--slow-transfer", "500us")
	if r.code != exitOK || strings.Count(r.out, " pod-3/agent-3\n") != 400 || strings.Count(r.out, "\n") != 401 {
		t.Errorf("%+v", r)
	}
	begin := time.UnixMicro(1_736_951_425_000_000)
	for i, line := range strings.Split(r.out, "\n")[1:401] { // not those of the frames
		if want := begin.Add(time.Duration(i+1) * 50 * time.Millisecond).Format("15:04:05.000000"); !strings.Contains(line, want) {
			t.Fatalf("line %d isn't of %s: %s", i, want, line)
		}
	}
}

// A signal cancels the context of the command.
func TestReplayEndsWithASignal(t *testing.T) {
	file, dir := stragglerFile(t, nil), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(4010*time.Millisecond, cancel)
		r := nixlring(ctx, nil, "replay", file, dir, "--speed", "0.5")
		if r.code != exitOK || !strings.Contains(r.out, ", 2.0 s of the recording; ") {
			t.Errorf("%+v", r)
		}
	})
}
