// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestFilesMatchTheGoldenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openTest(t, "", WithName("test_session"))
	s.AddPromptTokens(t.Context(), 3)
	recordAll(
		t, s,
		Packet{ID: 1, Layer: -1, Operation: "embedding", Device: CPU, Duration: 500 * time.Microsecond, Memory: 11010048},
		Packet{ID: 2, Operation: "attention_qkv_proj", Device: IGPU, Duration: 2300 * time.Microsecond, Memory: 47395635},
		Packet{ID: 3, Operation: "router_logits", Device: CPU, Duration: 800 * time.Microsecond, Memory: 5347738},
		Packet{ID: 4, Operation: "expert_ffn", Device: IGPU, Duration: 5200 * time.Microsecond, Memory: 134742016},
		Packet{ID: 5, Layer: 1, Operation: "attention_qkv_proj", Device: CPU, Duration: 3100 * time.Microsecond, Err: textError("iGPU out of memory")},
	)
	s.AddGeneratedTokens(t.Context(), 4)
	s.AddGeneratedTokens(t.Context(), 1)
	s.AddContentionEvents(2)
	for _, none := range []int64{0, -1} {
		s.AddPromptTokens(t.Context(), none)
		s.AddGeneratedTokens(t.Context(), none)
		s.AddContentionEvents(none)
	}
	must.OK(t, s.Close())
	golden(t, "test_session.golden.csv", read(t, s.sum.CSVLog))
	golden(t, "test_session.golden.json", read(t, s.sum.JSONSummary))
}

// The summary has the same members, with the same values, as upstream's summary of the same
// packets. Only averages differ: upstream includes failed packets.
func TestSummaryHasTheMembersOfUpstream(t *testing.T) {
	theirs, ours := read(t, upstreamPath("test_session.json")), read(t, "testdata", "test_session.golden.json")
	var members [2]any
	var summaries [2]Summary
	for i, text := range []string{theirs, ours} {
		must.OK(t, json.Unmarshal([]byte(text), &members[i]))
		s := &summaries[i]
		must.OK(t, json.Unmarshal([]byte(text), s))
		// The clocks differ, and upstream never counts contention events.
		s.StartTime, s.EndTime, s.TotalTimeS, s.TokensPerSecond, s.ContentionEvents = 0, 0, 0, 0, 0
	}
	anyValue := cmp.Options{cmp.Comparer(func(float64, float64) bool { return true }), cmp.Comparer(func(string, string) bool { return true })}
	if d := cmp.Diff(members[0], members[1], anyValue); d != "" {
		t.Errorf("members (-upstream +ours):\n%s", d)
	}
	failing := summaries[0].Operations["attention_qkv_proj"]
	if failing.AvgTimeMS != 1.15 {
		t.Fatalf("upstream's average doesn't include failures: %+v", failing)
	}
	failing.AvgTimeMS = 2.3
	summaries[0].Operations["attention_qkv_proj"] = failing
	equal(t, summaries[0], summaries[1])
}

func TestRatiosWithoutPacketsAreZero(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openTest(t, "telemetry", WithName("empty"), withClock(func() time.Time { return epoch }))
	s.AddGeneratedTokens(t.Context(), 5) // within zero time
	must.OK(t, s.Close())
	golden(t, "empty.golden.json", read(t, s.sum.JSONSummary))
}

// Expert selections include failed packets, averages don't.
func TestSummaryIsValidJSONWithAveragesOverSuccesses(t *testing.T) {
	s := openTest(t, t.TempDir(), WithName("a&b"))
	recordAll(
		t, s,
		Packet{Operation: "lm_head", Device: CPU, Duration: time.Second, Err: textError("no memory")},
		Packet{Operation: "expert<ffn>", Device: IGPU, Layer: 10, Duration: 2 * time.Millisecond, Expert: "7"},
		Packet{Operation: "expert<ffn>", Device: IGPU, Layer: 10, Duration: 4 * time.Millisecond},
		Packet{Operation: "expert<ffn>", Device: IGPU, Duration: time.Second, Err: textError("no memory")},
		Packet{Operation: "expert_selection", Device: CPU, Layer: 2},
		Packet{Operation: "router", Device: IGPU, Layer: 2, Expert: "7"},
	)
	must.OK(t, s.Close())
	b := read(t, s.sum.JSONSummary)
	for _, part := range []string{`"a&b"`, `"expert<ffn>"`, `"min_time_ms": null`} {
		if !json.Valid([]byte(b)) || !strings.Contains(b, part) {
			t.Errorf("%s is missing in %s", part, b)
		}
	}
	want := map[string]Group{
		"lm_head": {Count: 1, FailedCount: 1},
		"expert<ffn>": {
			Count: 3, FailedCount: 1, IGPUCount: 2,
			TotalTimeMS: 6, AvgTimeMS: 3, MinTimeMS: new(2.0), MaxTimeMS: 4,
		},
		"expert_selection": {Count: 1, CPUCount: 1, MinTimeMS: new(0.0)}, "router": {Count: 1, IGPUCount: 1, MinTimeMS: new(0.0)},
	}
	written, err := readSummary(s.sum.JSONSummary)
	must.OK(t, err)
	equal(t, want, written.Operations)
	equal(t, map[string]int64{"expert_7": 2, "expert<ffn>_layer_10": 1, "expert<ffn>_layer_0": 1, "expert_selection_layer_2": 1}, written.ExpertSelections)
}

func TestSummaryWithPythonsInfinityIsRead(t *testing.T) {
	s, err := readSummary(filepath.Join("testdata", "python_infinity.json"))
	must.OK(t, err)
	if s.SessionName != `NaN or "Infinity"` {
		t.Errorf("the name became %s", s.SessionName)
	}
	equal(t, map[string]Group{"lm_head": {Count: 1, FailedCount: 1}}, s.Operations)
}
