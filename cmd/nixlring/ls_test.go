// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// rings creates a directory with two rings, the ring of an agent that failed to start, and a
// text file. It is also the working directory of the test.
func rings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, layout := range map[string]ringbuf.Layout{"decode": ringbuf.V1, "pre\nfill": ringbuf.V4} {
		w, err := ringbuf.Create(name, layout, 16)
		must.OK(t, err)
		for range 6 {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
		}
		must.OK(t, w.Close())
	}
	ringtest.Make(t, "failed", ringtest.Header{Capacity: 12, Mask: 11}, 12*16)
	must.OK(t, os.WriteFile("letter", []byte("Dear Sir or Madam, this is not a ring but a letter."), 0o644))
	hours := time.Now().Add(-3*time.Hour - 30*time.Minute)
	for _, name := range []string{"decode", "pre\nfill", "failed", "letter"} {
		must.OK(t, os.Chtimes(name, hours, hours))
	}
	return dir
}

func TestLsPrintsATableOfRings(t *testing.T) {
	rings(t)
	uid := strconv.Itoa(os.Getuid())
	r := nixlring(t.Context(), nil, "ls", ".")
	if r.code != exitOK || r.err != "1 other file is neither a ring nor a store (--all lists them)\n" {
		t.Errorf("%+v", r)
	}
	var got [][]string
	for line := range strings.Lines(r.out) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"PATH", "LAYOUT", "CAPACITY", "PENDING", "FILL", "ALIVE", "OWNER", "AGE", "NOTES"},
		{"decode", "v1", "16", "6", "40%", "no", uid, "3", "h", "agent", "exited"},
		append([]string{"failed", "-", "-", "-", "-", "-", uid, "3", "h"},
			strings.Fields("ring not ready: the agent failed to start because 12 slots are not a power of two; set NIXL_TELEMETRY_BUFFER_SIZE to a power of two")...),
		{`"pre\nfill"`, "v4", "16", "6", "40%", "no", uid, "3", "h", "agent", "exited"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if all := nixlring(t.Context(), nil, "ls", ".", "--all"); !strings.Contains(all.out, "letter ") || all.err != "" {
		t.Errorf("all: %+v", all)
	}
}

func TestLsRefusesNamedFilesThatAreNotRings(t *testing.T) {
	rings(t)
	must.OK(t, os.Mkdir("empty", 0o700))
	if r := nixlring(t.Context(), nil, "record", "x.jsonl.zst", "empty", "-d", "1ms"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for path, want := range map[string]string{
		"letter":      "letter: not a NIXL telemetry ring: the file has no valid header; specify rings or directories",
		"x.jsonl.zst": "x.jsonl.zst: is a recording; use nixlring why or nixlring replay",
	} {
		r := nixlring(t.Context(), nil, "ls", path)
		if r.code != exitError || !strings.Contains(r.out, "not a NIXL telemetry ring") || !strings.HasPrefix(r.err, "nixlring: "+want) ||
			strings.Contains(r.err, "NIXL_TELEMETRY_DIR") {
			t.Errorf("%s: %+v", path, r)
		}
		if both := nixlring(t.Context(), nil, "ls", path, "decode"); both.code != exitError || !strings.Contains(both.out, "agent exited") {
			t.Errorf("%s and a ring: %+v", path, both)
		}
	}
	if r := nixlring(t.Context(), nil, "ls", "failed"); r.code != exitOK || !strings.Contains(r.out, "ring not ready") {
		t.Errorf("ring that isn't ready: %+v", r)
	}
}

func TestLsPrintsJSON(t *testing.T) {
	dir := rings(t)
	r := nixlring(t.Context(), map[string]string{"NIXL_TELEMETRY_DIR": dir}, "ls", "-o", "json")
	var got []map[string]any
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	if r.code != exitOK || r.err != "" || len(got) != 3 {
		t.Fatalf("%+v", r)
	}
	modified, _ := got[0]["modified"].(string)
	seconds, _ := got[0]["age_seconds"].(float64)
	delete(got[0], "modified")
	delete(got[0], "age_seconds")
	want := map[string]any{
		"path": filepath.Join(dir, "decode"), "ring": true, "layout": "v1", "capacity": 16.0,
		"pending": 6.0, "fill": 0.4, "agent_alive": false, "owner_uid": float64(os.Getuid()),
		"notes": []any{"agent exited"},
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if _, err := time.Parse(time.RFC3339, modified); err != nil || seconds < 12_600 {
		t.Errorf("modified %v, %v s ago: %v", modified, seconds, err)
	}
	if p, ok := got[1]["problem"].(string); !ok || !strings.HasPrefix(p, "ring not ready: ") || got[1]["ring"] != false {
		t.Errorf("not ready: %v", got[1])
	}
}

func TestLsNotesThatARingIsFull(t *testing.T) {
	dir := t.TempDir()
	full, err := ringbuf.Create(filepath.Join(dir, "full"), ringbuf.V4, 8)
	must.OK(t, err)
	defer full.Close()
	for range 7 {
		must.OK(t, full.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
	}
	fine, err := ringbuf.Create(filepath.Join(dir, "fine"), ringbuf.V4, 8)
	must.OK(t, err)
	defer fine.Close()
	r := nixlring(t.Context(), nil, "ls", dir, "-o", "json")
	var got []struct {
		Path  string
		Notes []string
	}
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	if len(got) != 2 || len(got[0].Notes) != 0 || !cmp.Equal(got[1].Notes, []string{"full: the agent loses events"}) {
		t.Errorf("%+v", got)
	}
}

func TestLsExplainsThatThereIsNoRing(t *testing.T) {
	empty := t.TempDir()
	r := nixlring(t.Context(), nil, "ls", empty)
	if r.code != exitOK || r.out != "" || !strings.Contains(r.err, "NIXL_TELEMETRY_ENABLE=y NIXL_TELEMETRY_EXPORTER=BUFFER NIXL_TELEMETRY_DIR="+empty) {
		t.Errorf("%+v", r)
	}
	r = nixlring(t.Context(), nil, "ls", "--require", "--output", "json", empty)
	if r.code != exitNoRing || r.out != "[]\n" || r.err != "" {
		t.Errorf("required: %+v", r)
	}
	missing := filepath.Join(empty, "missing")
	r = nixlring(t.Context(), nil, "ls", missing)
	if r.code != exitError || !strings.Contains(r.err, missing) || strings.Contains(r.err, "NIXL_TELEMETRY_ENABLE") {
		t.Errorf("missing: %+v", r)
	}
}
