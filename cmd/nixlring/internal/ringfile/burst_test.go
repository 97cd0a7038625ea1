// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestWatchingFindsTheLargestBurst(t *testing.T) {
	for name, tt := range map[string]struct {
		events int // per run interval
		advice []string
	}{
		"small": {events: 3}, // with 2, a burst would end at the ring's end, where a consumer waits before it takes the last event
		"large": {events: 5, advice: []string{"Up to 5 events arrived within a run interval, more than half of the ring's capacity. Larger bursts can overflow it. " +
			"Set NIXL_TELEMETRY_BUFFER_SIZE=16 (now 8) or a shorter NIXL_TELEMETRY_RUN_INTERVAL for the agent."}},
		"filled": {events: 7, advice: []string{"The ring was full while it was watched: the agent loses events. " +
			"Set NIXL_TELEMETRY_BUFFER_SIZE=32 (now 8) or a shorter NIXL_TELEMETRY_RUN_INTERVAL for the agent."}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "agent")
			synctest.Test(t, func(t *testing.T) {
				w, err := ringbuf.Create(path, ringbuf.V4, 8)
				must.OK(t, err)
				defer func() { must.OK(t, w.Close()) }()
				push := func(n int) {
					for range n {
						must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
					}
				}
				done := make(chan *ringfile.Report)
				go func() {
					r, err := ringfile.Inspect(t.Context(), ringfile.Config{
						Path: path, Proc: filepath.Join(filepath.Dir(path), "none"), RunInterval: 100 * time.Millisecond, For: 590 * time.Millisecond,
						EUID: os.Geteuid(), Now: time.Now,
					})
					must.OK(t, err)
					done <- r
				}()
				consumer, err := ringbuf.OpenReader(path, ringbuf.Consume)
				must.OK(t, err)
				time.Sleep(time.Millisecond) // synctest: between two polls
				for range 5 {
					time.Sleep(50 * time.Millisecond) // synctest
					push(tt.events - 1)
					time.Sleep(10 * time.Millisecond) // synctest: another poll
					push(1)
					time.Sleep(40 * time.Millisecond) // synctest
					_, err := consumer.Read(0, func(ringbuf.Batch) {})
					must.OK(t, errors.Join(err, consumer.Commit()))
				}
				must.OK(t, consumer.Close())
				must.OK(t, w.Close())
				w, err = ringbuf.Create(path, ringbuf.V3, 8) // the agent restarts
				must.OK(t, err)
				r := <-done
				if r.Burst.Restarts == 0 {
					t.Error("no restart was found")
				}
				r.Burst.Restarts = 0 // a restart can be found twice, because the time of the file isn't that of the bubble
				want := &ringfile.Burst{Seconds: 0.59, Events: uint64(5 * tt.events), Most: uint64(tt.events), PeakFill: tt.events}
				if diff := cmp.Diff(want, r.Burst); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(append([]string{}, tt.advice...), r.Advice); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
