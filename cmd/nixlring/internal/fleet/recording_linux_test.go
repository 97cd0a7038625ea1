// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
	must.OK(t, w.Open(start, 0, recording.About{Name: "a", Path: "/run/nixl/a", Attributes: map[string]string{"k8s.pod.name": "decode-0"}}, ringbuf.V4, 64))
	must.OK(t, w.State(start.Add(100*time.Millisecond), 0, recording.Missed))
	must.OK(t, w.Open(start.Add(200*time.Millisecond), 1, recording.About{Name: "b", Path: "/run/nixl/b"}, ringbuf.V4, 64))
	for n := range 10 {
		transfer, err := ringbuf.MakeBatch(ringbuf.V4, []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(100*(n+1))),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, 1000), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		})
		must.OK(t, err)
		at := start.Add(time.Duration(n+1) * time.Second)
		must.OK(t, w.Events(at, 0, transfer))
		switch n {
		case 4:
			must.OK(t, w.State(at, 1, recording.Full))
		case 9:
			must.OK(t, w.Events(at, 1, transfer)) // a consumer reads it again
		}
	}
	must.OK(t, w.State(start.Add(11*time.Second), 0, recording.Closed))
	must.OK(t, w.Close(start.Add(12*time.Second)))
	must.OK(t, out.Close())

	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s, err := fleet.OpenRecording(file, fleet.Config{Interval: 4 * time.Second}, true)
		must.OK(t, err)
		for range 3 {
			_, err = s.Next(t.Context())
			must.OK(t, err)
		}
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("three frames took %v, want 8 s", took)
		}
		must.OK(t, s.Close())
	})

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
			other     diagnose.Ring
		}{
			{0, 0, diagnose.Yes, diagnose.Ring{Capacity: 64, ConsumerUnknown: true}},
			{4500 * time.Millisecond, 4, diagnose.Yes, diagnose.Ring{Capacity: 64, ConsumerUnknown: true}},
			{9 * time.Second, 9, diagnose.Yes, diagnose.Ring{Capacity: 64, Peak: 63, Saturations: 1, ConsumerUnknown: true}},
			{12 * time.Second, 10, diagnose.No, diagnose.Ring{Capacity: 64, Saturations: 1, ConsumerUnknown: true}},
		} {
			f, err := s.Next(t.Context())
			must.OK(t, err)
			type state struct {
				At        time.Duration
				Transfers uint64
				Up        diagnose.Up
				Service   string
				Name, Pod string
				Notes     []string
				Agents    int
				Ring      diagnose.Ring
				Other     diagnose.Ring
			}
			a := f.Agent("000000")
			got := state{f.Time.Sub(start), a.Moved[0].Transfers, a.Up, a.Service, a.Name, a.Attributes["k8s.pod.name"], f.Notes, len(f.Agents), *a.Ring, *f.Agent("000001").Ring}
			if diff := cmp.Diff(state{want.at, want.transfers, want.up, "/run/nixl", "decode-0/a", "decode-0", nil, 2, diagnose.Ring{Capacity: 64, Misses: 1, ConsumerUnknown: true}, want.other}, got); diff != "" {
				t.Error(diff)
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
