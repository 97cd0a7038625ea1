// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestInspectPrintsAReport(t *testing.T) {
	here, err := os.Getwd()
	must.OK(t, err)
	dir := t.TempDir()
	t.Chdir(dir) // for a short, constant path
	const path = "agent"
	w, err := ringbuf.Create(path, ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	for range 7 {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096)))
	}
	must.OK(t, os.WriteFile("locks", nil, 0o600)) // dir is also /proc
	r := runWith(t.Context(), world{now: time.Now, proc: dir}, "inspect", path)
	if r.code != exitOK || r.err != "" {
		t.Errorf("%+v", r)
	}
	t.Chdir(here)
	out := r.out
	for pattern, with := range map[string]string{
		`uid \d+, gid \d+`: "uid 1000, gid 1000",
		// The line breaks depend on the length of the number.
		`inspect\s+as\s+uid\s+\d+\s+or\s+as\s+root,\s+outside\s+of\s+any\s+container`: "inspect as uid 1000 or as root, outside of any container",
		`inode \d+ on device \w+:\w+`: "inode 42 on device fe:01", `-rw-.*-,`: "-rw-r--r--,",
	} {
		out = regexp.MustCompile(pattern).ReplaceAllString(out, with)
	}
	golden(t, "inspect.txt", out)
}

func TestInspectPrintsJSON(t *testing.T) {
	dir := rings(t)
	r := nixlring(t.Context(), nil, "inspect", "decode", "--output", "json")
	var got map[string]any
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	content, ok := got["content"].(map[string]any)
	if r.code != exitOK || !ok || got["ring"] != true || content["layout"] != "v1" || content["pending"] != 6.0 || got["unattended"] != true {
		t.Errorf("%+v", r)
	}
	r = nixlring(t.Context(), nil, "inspect", "letter", "-o", "json")
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	if r.code != exitNoRing || r.err != "" || got["ring"] != false || got["error"] == "" {
		t.Errorf("%+v", r)
	}
	if r := nixlring(t.Context(), nil, "inspect", filepath.Join(dir, "missing")); r.code != exitError || r.out != "" || r.err == "" {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat("letter"); err != nil {
		t.Error(err)
	}
}
