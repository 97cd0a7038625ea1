// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// stragglerFile writes a recording of six agents with 20 transfers per second for 20 seconds. The
// transfers of one of them take ten times as long. Then change may write more.
func stragglerFile(t *testing.T, change func(w *recording.Writer, end time.Time)) string {
	t.Helper()
	const agents, bytes = 6, 1 << 20
	file := filepath.Join(t.TempDir(), "agents.jsonl.zst")
	out, err := os.Create(file)
	must.OK(t, err)
	start := time.UnixMicro(1_736_951_425_000_000)
	w, err := recording.NewWriter(out, recording.Header{Tool: "test", Host: "gpu-7", Start: start})
	must.OK(t, err)
	for n := range agents {
		name := fmt.Sprintf("agent-%d", n)
		must.OK(t, w.Open(start, n, recording.About{
			Name: name, Path: "/run/nixl/" + name, Attributes: map[string]string{"k8s.pod.name": fmt.Sprintf("pod-%d", n)},
		}, ringbuf.V4, 64))
	}
	at := start
	for range 400 {
		at = at.Add(50 * time.Millisecond)
		for n := range agents {
			took := uint64(100)
			if n == 3 {
				took = 1000
			}
			b, err := ringbuf.MakeBatch(ringbuf.V4, []ringbuf.Event{
				ringbuf.NewEvent(ringbuf.TypeXferPostTime, 10), ringbuf.NewEvent(ringbuf.TypeXferTime, took),
				ringbuf.NewEvent(ringbuf.TypeTxBytes, bytes), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
			})
			must.OK(t, err)
			must.OK(t, w.Events(at, n, b))
		}
	}
	if change != nil {
		change(w, at)
	}
	must.OK(t, w.Close())
	must.OK(t, out.Close())
	return file
}

func TestWhyOfARecordingMatchesTheGoldenFile(t *testing.T) {
	file := stragglerFile(t, func(w *recording.Writer, end time.Time) {
		must.OK(t, w.State(end, 2, recording.Full))
		must.OK(t, w.State(end, 4, recording.Full))
	})
	var text messages // both streams
	if code := run(t.Context(), world{out: &text, err: &text, env: lookup(nil)}, []string{"why", file}); code != exitError {
		t.Errorf("exit code %d", code)
	}
	golden(t, "why_recording.txt", strings.ReplaceAll(text.String(), file, "FILE"))
	r := nixlring(t.Context(), nil, "why", file, "-o", "json", "--include", "agent-[015]")
	var v struct {
		Recording string
		Agents    int
		Seconds   float64
		Findings  []any
	}
	must.OK(t, json.Unmarshal([]byte(r.out), &v))
	if r.code != exitNoRing || v.Recording != file || v.Agents != 3 || v.Seconds != 20 || len(v.Findings) != 0 {
		t.Errorf("without the others: %+v", r)
	}
}

// The step must grow with the length, or else this takes years.
func TestWhyReadsARecordingOfManyYears(t *testing.T) {
	file := stragglerFile(t, func(w *recording.Writer, end time.Time) {
		for year := range 200 {
			must.OK(t, w.State(end.AddDate(year, 0, 0), 0, recording.Missed))
		}
	})
	if r := nixlring(t.Context(), nil, "why", file); r.code != exitNoRing || !strings.Contains(r.err, "6 agents") {
		t.Errorf("%+v", r)
	}
}

func TestWhyExplainsATruncatedRecordingWithAWarning(t *testing.T) {
	file := stragglerFile(t, nil)
	info, err := os.Stat(file)
	must.OK(t, err)
	must.OK(t, os.Truncate(file, info.Size()-1)) // the last block ends before
	r := nixlring(t.Context(), nil, "why", file)
	if r.code != exitError || !strings.Contains(r.err, "Warning: truncated recording: it ends after line ") || !strings.Contains(r.out, "pod-3/agent-3") {
		t.Errorf("%+v", r)
	}
}

func TestTopPrintsTheTotalsOfARecording(t *testing.T) {
	r := nixlring(t.Context(), nil, "top", stragglerFile(t, nil), "-o", "json")
	list := framesOf(t, r)
	if len(list) != 2 || len(list[1].Agents) != 6 || r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	a := &list[1].Agents[3]
	if sum := a.Both(); a.Name != "pod-3/agent-3" || sum.Transfers != 400 || math.Abs(float64(sum.Bytes)/sum.Seconds/(1<<20/1e-3)-1) > 1e-6 ||
		a.Ring.Consumer != nil || a.Attributes["k8s.pod.name"] != "pod-3" {
		t.Errorf("%+v", a)
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
