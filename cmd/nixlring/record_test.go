// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recorder"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
)

// recorded records simulated agents for some time.
func recorded(t *testing.T, simulated time.Duration, args ...string) (file string, live simulate.Report) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(t.TempDir(), "agents.jsonl.zst")
	done := make(chan result)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- nixlring(ctx, nil, "record", file, dir) }()
	r := nixlring(t.Context(), nil, append([]string{"simulate", dir, "--no-consumer", "-d", simulated.String(), "-o", "json"}, args...)...)
	must.OK(t, json.Unmarshal([]byte(r.out), &live))
	cancel()
	if r := <-done; r.code != exitOK || r.out != "" || !strings.Contains(r.err, " events of 3 rings (3 starts of agents) in ") {
		t.Errorf("%+v", r)
	}
	return file, live
}

// duration returns the duration of a recording.
func duration(t *testing.T, file string) time.Duration {
	t.Helper()
	f, err := os.Open(file)
	must.OK(t, err)
	defer f.Close()
	r, err := recorder.Read(f)
	must.OK(t, err)
	defer r.Close()
	var rec recording.Record
	for err == nil {
		err = r.Next(&rec)
	}
	return rec.At.Sub(r.Header().Start)
}

func TestReplayWritesTheRecordedRings(t *testing.T) {
	file, live := recorded(t, 300*time.Millisecond, "-n", "3", "--layout", "mixed", "--seed", "5")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := nixlring(t.Context(), nil, "replay", file, dir, "--speed", "2", "-o", "json", "--quiet")
		var got map[string]any
		must.OK(t, json.Unmarshal([]byte(r.out), &got))
		want := map[string]any{
			"rings": 3.0, "starts": 3.0, "events_written": float64(live.Sum.Written),
			"events_dropped": 0.0, "gaps_in_recording": 0.0, "seconds": got["seconds"],
		}
		if diff := cmp.Diff(want, got); diff != "" || r.code != exitOK || r.err != "" {
			t.Errorf("%s %+v", diff, r)
		}
		whole := duration(t, file)
		if took := time.Since(start); whole < 300*time.Millisecond || took < whole/2 || took > whole/2+50*time.Millisecond {
			t.Errorf("%v at twice the speed took %v", whole, took)
		}
	})
	for path := range live.Agents {
		if diff := cmp.Diff(inRing(t, path), inRing(t, filepath.Join(dir, filepath.Base(path)))); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestReplayOfATruncatedRecordingWritesItsBeginning(t *testing.T) {
	file, _ := recorded(t, 2200*time.Millisecond, "-n", "3") // a frame is written every second
	info, err := os.Stat(file)
	must.OK(t, err)
	must.OK(t, os.Truncate(file, info.Size()*2/3))
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := nixlring(t.Context(), nil, "replay", file, dir, "--remove")
		if r.code != exitError || !strings.Contains(r.err, "truncated recording") || !strings.HasPrefix(r.out, "Replayed ") ||
			strings.HasPrefix(r.out, "Replayed 0") {
			t.Errorf("%+v", r)
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v %v", left, err)
	}
}

func TestReplayIsInterruptedBySignal(t *testing.T) {
	file, _ := recorded(t, 300*time.Millisecond, "-n", "3")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r := nixlring(ctx, nil, "replay", file, t.TempDir(), "--speed", "0.1")
		if r.code != exitOK || !strings.Contains(r.out, "of the recording; dropped because nobody read them: 0\n") {
			t.Errorf("%+v", r)
		}
	})
}

func TestRecordOverwritesFilesOnlyWithForceFlag(t *testing.T) {
	dir := rings(t)
	file := filepath.Join(dir, "letter")
	before, err := os.ReadFile(file)
	must.OK(t, err)
	r := nixlring(t.Context(), nil, "record", file, dir, "-d", "1ms")
	if r.code != exitError || !strings.Contains(r.err, "the file exists; specify another file") {
		t.Errorf("%+v", r)
	}
	after, err := os.ReadFile(file)
	must.OK(t, err)
	if string(before) != string(after) {
		t.Error("the file was overwritten")
	}
	if r := nixlring(t.Context(), nil, "record", file, dir, "-d", "1ms", "--force", "-q"); r.code != exitOK || r.err != "" {
		t.Errorf("forced: %+v", r)
	}
	missing := filepath.Join(dir, "missing")
	for want, args := range map[string][]string{
		"no such directory": {"record", filepath.Join(dir, "new"), missing},
		"not a recording":   {"replay", "failed", dir},
		"no such file":      {"replay", missing, dir},
		"create it first":   {"replay", file, missing},
	} {
		if r := nixlring(t.Context(), nil, args...); r.code != exitError || !strings.Contains(r.err, want) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was created")
	}
}
