// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRecordingIsPlayedByTheClockUntilItsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agents.jsonl.zst")
	out, err := os.Create(file)
	must.OK(t, err)
	start := time.UnixMicro(1_736_951_425_000_000)
	w, err := recording.NewWriter(out, recording.Header{Start: start})
	must.OK(t, err)
	must.OK(t, w.Open(start, 0, recording.About{Name: "a", Path: "/run/nixl/a"}, ringbuf.V4, 64))
	for n := range 10 {
		transfer, err := ringbuf.MakeBatch(ringbuf.V4, []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(100*(n+1))),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, 1000), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		})
		must.OK(t, err)
		must.OK(t, w.Events(start.Add(time.Duration(n+1)*time.Second), 0, transfer))
	}
	must.OK(t, w.State(start.Add(11*time.Second), 0, recording.Closed, "agent exited"))
	must.OK(t, w.Close())
	must.OK(t, out.Close())

	now := time.Unix(1_900_000_000, 0)
	s, err := top.OpenRecording(top.RecordingConfig{Path: file, Now: func() time.Time { return now }})
	must.OK(t, err)
	must.OK(t, s.Start())
	board := top.NewBoard(time.Minute, 10)
	for _, c := range []struct {
		after     time.Duration
		at        time.Duration
		transfers uint64
		alive     procs.Alive
	}{
		{0, 0, 0, procs.Yes},
		{4500 * time.Millisecond, 4500 * time.Millisecond, 4, procs.Yes},
		{10 * time.Second, 10 * time.Second, 10, procs.Yes},
		{time.Minute, 11 * time.Second, 10, procs.No},
		{time.Hour, 11 * time.Second, 10, procs.No},
	} {
		now = time.Unix(1_900_000_000, 0).Add(c.after)
		sample := s.Sample()
		if len(sample.Agents) != 1 {
			t.Fatalf("%v: %+v", c.after, sample)
		}
		a := &sample.Agents[0]
		if !sample.At.Equal(start.Add(c.at)) || a.Totals.Transfers != c.transfers || a.Alive != c.alive || sample.Warning != "" {
			t.Errorf("after %v: %+v", c.after, sample)
		}
		board.Add(sample)
	}
	if row := board.Row("0"); row == nil || row.Window.Transfers != 10 {
		t.Errorf("%+v", row)
	}
	if list := s.Slowest("0"); len(list) != 10 || list[0].Took != time.Millisecond {
		t.Errorf("%+v", list)
	}
	must.OK(t, s.Close())
}
