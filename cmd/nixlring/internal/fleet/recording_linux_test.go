// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRecordingIsPlayedUntilItsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agents.jsonl.zst")
	out, err := os.Create(file)
	must.OK(t, err)
	start := time.UnixMicro(1_736_951_425_000_000)
	w, err := recording.NewWriter(out, recording.Header{Start: start})
	must.OK(t, err)
	must.OK(t, w.Open(start, 0, recording.About{Name: "a", Path: "/run/nixl/a"}, ringbuf.V4, 64))
	must.OK(t, w.State(start.Add(100*time.Millisecond), 0, recording.Missed))
	must.OK(t, w.Open(start.Add(200*time.Millisecond), 1, recording.About{Name: "b", Path: "/run/nixl/b"}, ringbuf.V4, 64))
	for n := range 10 {
		transfer, err := ringbuf.MakeBatch(ringbuf.V4, []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(100*(n+1))),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, 1000), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		})
		must.OK(t, err)
		must.OK(t, w.Events(start.Add(time.Duration(n+1)*time.Second), 0, transfer))
	}
	must.OK(t, w.State(start.Add(11*time.Second), 0, recording.Closed))
	must.OK(t, w.Close())
	must.OK(t, out.Close())

	now := time.Unix(1_900_000_000, 0)
	cfg := fleet.Config{Interval: 4500 * time.Millisecond, Now: func() time.Time { return now }}
	for _, live := range []bool{false, true} {
		s, err := fleet.OpenRecording(file, cfg, live)
		must.OK(t, err)
		board := fleet.NewBoard(time.Minute)
		for _, want := range []struct {
			at        time.Duration
			transfers uint64
			up        diagnose.Up
		}{
			{0, 0, diagnose.Yes},
			{4500 * time.Millisecond, 4, diagnose.Yes},
			{9 * time.Second, 9, diagnose.Yes},
			{11 * time.Second, 10, diagnose.No},
		} {
			f, err := s.Next(t.Context())
			must.OK(t, err)
			a := f.Agent("000000")
			if a == nil || !f.Time.Equal(start.Add(want.at)) || a.Moved[0].Transfers != want.transfers || a.Up != want.up || a.Service != "/run/nixl" || len(f.Notes) > 0 || len(f.Agents) != 2 {
				t.Errorf("want %+v: %+v", want, f)
			}
			board.Add(f)
			now = now.Add(cfg.Interval) // due at once
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
		if list := board.Slowest("000000"); len(list) != 10 || list[0].Took != 0.001 {
			t.Errorf("%+v", list)
		}
		must.OK(t, s.Close())
	}
}
