// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// recordingOf returns a recording of six agents, with a frame every interval for some time. Transfers of agent-3 take ten
// times as long.
func recordingOf(t *testing.T, interval, length time.Duration) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := recording.NewWriter(&out)
	must.OK(t, err)
	start := time.UnixMicro(1_736_951_425_000_000)
	for past := time.Duration(0); past <= length; past += interval {
		f := &diagnose.Frame{Time: start.Add(past)}
		for n := range 6 {
			took := 1e-4
			if n == 3 {
				took = 1e-3
			}
			transfers := uint64(past / (50 * time.Millisecond))
			f.Agents = append(f.Agents, diagnose.Agent{
				Identity: diagnose.Identity{ID: fmt.Sprintf("agent-%d", n), Name: fmt.Sprintf("pod-%d/agent-%[1]d", n), Job: diagnose.Job{Service: "decode"}},
				Up:       diagnose.Yes, Events: 4 * transfers, Ring: &diagnose.Ring{Capacity: 64, ConsumerUnknown: true},
				Moved:     [2]diagnose.Moved{{Bytes: transfers << 20, Transfers: transfers, Seconds: float64(transfers) * took}},
				Transfers: []diagnose.Transfer{{Time: f.Time, Bytes: 1 << 20, Took: took}},
			})
		}
		must.OK(t, w.Write(f))
	}
	must.OK(t, w.Close())
	return out.Bytes()
}

func recordingFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agents.jsonl.zst")
	must.OK(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestWhyReadsARecordingFromAFileAndFromStandardInput(t *testing.T) {
	content := recordingOf(t, time.Second, 20*time.Second)
	file := recordingFile(t, content)
	piped := runWith(t.Context(), world{in: bytes.NewReader(content), env: lookup(nil), now: time.Now}, "why", "-")
	r := nixlring(t.Context(), nil, "why", file)
	if r.code != exitError || !strings.Contains(r.out, "pod-3/agent-3") || !strings.Contains(r.out, "watched for 20 s") {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(strings.ReplaceAll(r.out, file, "standard input"), piped.out); diff != "" || piped.code != r.code {
		t.Errorf("exit code %d, %s", piped.code, diff)
	}
	if r := nixlring(t.Context(), nil, "why", file, "--include", "agent-[0145]"); r.code != exitOK || !strings.Contains(r.out, "4 agents") {
		t.Errorf("%+v", r)
	}
}

// The step must grow with the length, or else this takes years.
func TestWhyReadsARecordingOfManyYears(t *testing.T) {
	const day = 24 * time.Hour
	if r := nixlring(t.Context(), nil, "why", recordingFile(t, recordingOf(t, 10*day, 100*365*day))); !strings.Contains(r.out, "6 agents") {
		t.Errorf("%+v", r)
	}
}

func TestTopPrintsTheEndOfARecording(t *testing.T) {
	r := nixlring(t.Context(), nil, "top", recordingFile(t, recordingOf(t, time.Second, 20*time.Second)), "-o", "json")
	if list := framesOf(t, r); len(list) != 2 || list[1].Agents[3].Moved[0].Transfers != 400 {
		t.Errorf("%+v", r)
	}
}

func TestSlowPrintsTheTransfersOfARecordedTime(t *testing.T) {
	r := nixlring(t.Context(), nil, "slow", recordingFile(t, recordingOf(t, time.Second, time.Hour)), "--slow-transfer", "500us", "-d", "10m")
	if r.code != exitOK || strings.Count(r.out, " pod-3/agent-3\n") != 601 || strings.Count(r.out, "\n") != 602 {
		t.Errorf("code %d, %d lines, %s", r.code, strings.Count(r.out, "\n"), r.err)
	}
}

// Why on the recording finds what why finds on the rings, also about processes of the host.
func TestARecordingHasWhatWhyWatches(t *testing.T) {
	dir := simulating(t, "--no-consumer", "--scenario", "straggler")
	file, proc := filepath.Join(t.TempDir(), "x.jsonl.zst"), procWith(t, "NIXL_TELEMETRY_ENABLE=n\x00")
	w := world{now: time.Now, proc: proc, env: quick}
	recorded := make(chan result)
	go func() { recorded <- runWith(t.Context(), w, "record", file, dir, "-d", "4s") }()
	live := runWith(t.Context(), w, "why", dir, "--for", "4s", "-o", "json")
	if r := <-recorded; r.code != exitOK || !strings.Contains(r.err, "Recorded 6 agents and ") {
		t.Fatalf("%+v", r)
	}
	w.proc = "none" // the recording is read elsewhere
	for _, r := range []result{live, runWith(t.Context(), w, "why", file, "-o", "json")} {
		var v verdict
		must.OK(t, json.Unmarshal([]byte(r.out), &v))
		for _, kind := range []diagnose.Kind{diagnose.Straggler, diagnose.TelemetryDisabled} {
			if !slices.Contains(kinds(v), kind) {
				t.Errorf("no %s in %s", kind, r.out)
			}
		}
	}
}
