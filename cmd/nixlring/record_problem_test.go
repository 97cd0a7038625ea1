// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRecordOnProblemWritesARecordingThatWhyExplains(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "recordings")
	var writers []*ringbuf.Writer
	for i := range 6 {
		w, err := ringbuf.Create(filepath.Join(dir, fmt.Sprintf("agent-%d", i)), ringbuf.V5, 1024)
		must.OK(t, err)
		defer w.Close()
		writers = append(writers, w)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result)
	go func() {
		done <- nixlring(ctx, nil, "record", "--on-problem", to, dir, "--slow-transfer", "50ms")
	}()
	var files []string
	must.Eventually(t, func() string { // the transfers go on until they are recorded
		for i, w := range writers {
			took := uint64(10_000)
			if i == 3 {
				took = 100_000
			}
			_, err := w.PushBatch([]ringbuf.Event{
				ringbuf.NewEvent(ringbuf.TypeXferPostTime, 10), ringbuf.NewEvent(ringbuf.TypeXferTime, took),
				ringbuf.NewEvent(ringbuf.TypeTxBytes, 1<<20), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
			})
			must.OK(t, err)
		}
		if files, _ = filepath.Glob(filepath.Join(to, "nixl-*-slow_transfer-agent-3.jsonl.zst")); len(files) != 1 {
			return fmt.Sprintf("%q", files)
		}
		return ""
	})
	cancel()
	if r := <-done; r.code != exitOK || !strings.Contains(r.err, `because of a slow transfer of agent "agent-3": transmitting 1.05 MB took 100ms`) ||
		!strings.HasSuffix(r.err, "Recorded 1 problem\n") {
		t.Errorf("%+v", r)
	}
	r := nixlring(t.Context(), nil, "why", files[0])
	if r.code != exitError || !strings.Contains(r.err, "Recorded because of a slow transfer of agent-3 at ") ||
		!strings.Contains(r.out, "agent-3 moves data at 10% of the speed of its peers") {
		t.Errorf("%+v", r)
	}
}

func TestRecordOnProblemRejectsWhatItCantUse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "--slow-transfer: requires --on-problem", []string{"record", "x", dir, "--slow-transfer", "1s"}},
		{exitUsage, "--min-size 7: requires --min-throughput", []string{"record", "--on-problem", "x", dir, "--min-size", "7"}},
		{exitUsage, "--force: --on-problem overwrites no file", []string{"record", "--on-problem", "x", dir, "--force"}},
		{exitUsage, "--max-bytes 5: must be 1048576 or more", []string{"record", "--on-problem", "x", dir, "--max-bytes", "5"}},
		{exitError, file + " is not a directory", []string{"record", "--on-problem", file, dir}},
	} {
		if r := nixlring(t.Context(), nil, c.args...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}
