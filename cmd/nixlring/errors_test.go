// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A path that isn't there is told in the same words by every command, with
// what to do, and without the system call that found out.
func TestMissingPaths(t *testing.T) {
	dir := rings(t)
	missing := filepath.Join(dir, "missing")
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"there is no such directory; agents don't make it, so make it first", []string{"ls", missing}},
		{"there is no such file; nixlring ls lists the rings of a directory", []string{"read", missing}},
		{"there is no such file; nixlring ls lists the rings of a directory", []string{"inspect", missing}},
		{"there is no such directory; agents don't make it, so make it first", []string{"top", missing, "--once", "-w", "10ms"}},
		{"there is no such directory; agents don't make it, so make it first", []string{"record", "new", missing}},
		{"there is no such directory; make it first", []string{"record", filepath.Join(missing, "new"), dir}},
		{"there is no such file; a recording is what nixlring record writes", []string{"replay", missing, dir}},
		{"there is no such directory; agents don't make it, so make it first", []string{"simulate", missing}},
		{"there is no such file or directory; name the CSV of a session", []string{"session", "analyze", missing}},
		{"telemetry: there is no such file or directory; name the CSV of a session", []string{"session", "analyze"}},
	} {
		r := nixlring(t.Context(), nil, tt.args...)
		if r.code != exitError || r.out != "" || !strings.Contains(r.err, tt.want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: %+v; want %q", tt.args, r, tt.want)
		}
		for _, call := range []string{"stat ", "open "} {
			if strings.Contains(r.err, call) {
				t.Errorf("%v names %q: %s", tt.args, call, r.err)
			}
		}
	}
	for _, args := range [][]string{{"top", "letter", "--once"}, {"record", "new", "letter"}, {"simulate", "letter"}, {"replay", "x", "letter"}} {
		if r := nixlring(t.Context(), nil, args...); r.code != exitError || !strings.Contains(r.err, "it is a file; the directory") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestEachLineOfErrorsSaysWhose(t *testing.T) {
	rings(t)
	r := nixlring(t.Context(), nil, "ls", "missing", "missing too")
	if r.code != exitError || strings.Count(r.err, "nixlring: missing") != 2 || strings.Count(r.err, "\n") != 2 {
		t.Errorf("%+v", r)
	}
}
