// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func equal(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesMatchTheGoldenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openTest(t, "telemetry", WithName("test_session"))
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
	s.AddContentionEvents(t.Context(), 2)
	closeTest(t, s)
	csv, summary := read(t, s.files.csv), read(t, s.files.json)
	t.Chdir(testdataParent)
	golden(t, "test_session.golden.csv", csv)
	golden(t, "test_session.golden.json", summary)
}

// The summary has the same members, with the same values, as
// upstream's summary of the same packets. Only averages differ: upstream includes
// failed packets.
func TestSummaryHasTheMembersOfUpstream(t *testing.T) {
	theirs := read(t, upstreamPath("test_session.json"))
	ours := read(t, "testdata", "test_session.golden.json")
	equal(t, members(t, theirs), members(t, ours))

	var a, b Summary
	for text, into := range map[string]*Summary{theirs: &a, ours: &b} {
		must.OK(t, json.Unmarshal([]byte(text), into))
		// The clocks differ, and upstream never counts contention events.
		into.StartTime, into.EndTime, into.TotalTimeS, into.TokensPerSecond = 0, 0, 0, 0
		into.ContentionEvents = 0
	}
	failing := a.Operations["attention_qkv_proj"]
	if failing.AvgTimeMS != 1.15 {
		t.Fatalf("upstream's average doesn't include failures: %+v", failing)
	}
	failing.AvgTimeMS = 2.3
	a.Operations["attention_qkv_proj"] = failing
	equal(t, a, b)
}

// members returns the sorted keys of a JSON document, on all levels.
func members(t *testing.T, document string) []string {
	t.Helper()
	var keys []string
	d := json.NewDecoder(strings.NewReader(document))
	var walk func()
	walk = func() {
		token, err := d.Token()
		must.OK(t, err)
		if token != json.Delim('{') {
			return
		}
		for d.More() {
			key, err := d.Token()
			must.OK(t, err)
			keys = append(keys, fmt.Sprint(key))
			walk()
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
	}
	walk()
	slices.Sort(keys)
	return keys
}

func TestRatiosWithoutPacketsAreZero(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openTest(t, "telemetry", WithName("empty"), WithClock(func() time.Time { return epoch }))
	s.AddGeneratedTokens(t.Context(), 5) // within zero time
	closeTest(t, s)
	got := read(t, s.files.json)
	t.Chdir(testdataParent)
	golden(t, "empty.golden.json", got)
}

func TestSummaryIsValidJSONWithAveragesOverSuccesses(t *testing.T) {
	s := openTest(t, t.TempDir(), WithName("a&b"))
	recordAll(
		t, s,
		Packet{Operation: "lm_head", Device: CPU, Duration: time.Second, Err: textError("no memory")},
		Packet{Operation: "expert<ffn>", Device: IGPU, Duration: 2 * time.Millisecond},
		Packet{Operation: "expert<ffn>", Device: IGPU, Duration: 4 * time.Millisecond},
		Packet{Operation: "expert<ffn>", Device: IGPU, Duration: time.Second, Err: textError("no memory")},
	)
	closeTest(t, s)
	b := read(t, s.files.json)
	for _, part := range []string{`"a&b"`, `"expert<ffn>"`, `"expert<ffn>_layer_0"`, `"min_time_ms": null`} {
		if !json.Valid([]byte(b)) || !strings.Contains(b, part) {
			t.Errorf("%s is missing in %s", part, b)
		}
	}
	shortest := 2.0
	want := map[string]OperationSummary{
		"lm_head": {Count: 1, FailedCount: 1},
		"expert<ffn>": {
			Count: 3, FailedCount: 1, IGPUCount: 2,
			TotalTimeMS: 6, AvgTimeMS: 3, MinTimeMS: &shortest, MaxTimeMS: 4,
		},
	}
	written, err := readSummary(s.files.json)
	must.OK(t, err)
	equal(t, want, written.Operations)
}

func TestSummaryWithPythonsInfinityIsRead(t *testing.T) {
	s, err := readSummary(filepath.Join("testdata", "python_infinity.json"))
	must.OK(t, err)
	if s.SessionName != `NaN or "Infinity"` {
		t.Errorf("the name became %s", s.SessionName)
	}
	equal(t, map[string]OperationSummary{"lm_head": {Count: 1, FailedCount: 1}}, s.Operations)
}

func TestBrokenSummaryIsAnError(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"operation_breakdown": 1}`, `{"expert_selection_distribution": {"a": "b"}}`} {
		path := filepath.Join(t.TempDir(), "x.json")
		write(t, path, text)
		if s, err := readSummary(path); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}
