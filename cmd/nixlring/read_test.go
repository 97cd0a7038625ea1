// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// followed runs nixlring read --follow until do returns, and a signal arrives, which cancels its context.
func followed(t *testing.T, path string, args []string, do func(poll func())) (r result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan result, 1)
		go func() { done <- nixlring(ctx, nil, append([]string{"read", "--follow", path}, args...)...) }()
		time.Sleep(25 * time.Millisecond)                 // synctest; nothing happens at the time of a poll
		do(func() { time.Sleep(100 * time.Millisecond) }) // synctest
		cancel()
		r = <-done
	})
	return r
}

func create(t *testing.T, path string, layout ringbuf.Layout) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, layout, 8)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, w.Close()) })
	return w
}

// push writes events with increasing values.
func push(t *testing.T, w *ringbuf.Writer, first uint64, n int) {
	t.Helper()
	for i := range uint64(n) {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, first+i)))
	}
}

func TestReadFollowsAPathWhateverHappensToItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	w := create(t, path, ringbuf.V4)
	push(t, w, 1, 2)
	r := followed(t, path, []string{"--consume", "--output", "csv"}, func(poll func()) {
		poll()
		for i := range uint64(3) { // more than the capacity
			push(t, w, 3+3*i, 3)
			poll()
		}
		w = create(t, path, ringbuf.V1) // the agent restarts
		push(t, w, 12, 2)
		poll()
		ringtest.Edit(t, path, func(h *ringtest.Header) { h.ReadPos = 1 }) // another consumer
		poll()
		must.OK(t, os.Remove(path)) // the agent continues to write
		poll()
		push(t, w, 14, 1)
		poll()
		push(t, create(t, path, ringbuf.V4), 15, 1) // another agent takes the name
		poll()
		must.OK(t, os.Truncate(path, 100))
		poll()
	})
	golden.Compare(t, *update, "read_follow.txt", strings.ReplaceAll(r.err+r.out, path, "agent"))
}

func TestReadPrintsNoMoreThanCountAcrossReplacedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	w := create(t, path, ringbuf.V4)
	r := followed(t, path, []string{"--count", "2", "--output", "json"}, func(poll func()) {
		poll()
		must.OK(t, os.Remove(path))
		push(t, w, 1, 5)
		push(t, create(t, path, ringbuf.V4), 6, 1)
		poll()
	})
	if strings.Count(r.out, "\n") != 2 {
		t.Errorf("%+v", r)
	}
}

// broken is an output that returns errors.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestReadDoesNotCommitEventsThatItCouldNotWrite(t *testing.T) {
	path := ringtest.Copy(t, ringtest.Find(t, "v1.4.0/mixed_cap16"))
	before := ringtest.ReadHeader(t, path)
	var errs strings.Builder
	if code := run(t.Context(), world{out: broken{}, err: &errs, now: time.Now}, []string{"read", "--consume", path}); code != exitError {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if diff := cmp.Diff(before, ringtest.ReadHeader(t, path)); diff != "" {
		t.Errorf("events were committed: %s", diff)
	}
}
