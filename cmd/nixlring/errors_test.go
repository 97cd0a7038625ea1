// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// All commands report a missing path in the same words and say what to do, without
// naming a system call.
func TestMissingPathsAreReportedInTheSameWords(t *testing.T) {
	dir := rings(t)
	missing := filepath.Join(dir, "missing")
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"no such directory; agents don't create it, so create it first", []string{"ls", missing}},
		{"no such file; nixlring ls lists the rings of a directory", []string{"read", missing}},
		{"no such file; nixlring ls lists the rings of a directory", []string{"inspect", missing}},
		{"no such directory; agents don't create it, so create it first", []string{"top", missing, "--once", "-w", "10ms"}},
		{"no such directory; agents don't create it, so create it first", []string{"record", "new", missing}},
		{"no such directory; create it first", []string{"record", filepath.Join(missing, "new"), dir}},
		{"no such file; specify a recording written by nixlring record", []string{"replay", missing, dir}},
		{"no such directory; agents don't create it, so create it first", []string{"simulate", missing}},
		{"no such file or directory; specify the CSV of a session", []string{"session", "analyze", missing}},
		{"telemetry: no such file or directory; specify the CSV of a session", []string{"session", "analyze"}},
	} {
		r := nixlring(t.Context(), nil, tt.args...)
		if r.code != exitError || r.out != "" || !strings.Contains(r.err, tt.want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: %+v; want %q", tt.args, r, tt.want)
		}
		for _, call := range []string{"stat ", "open "} {
			if strings.Contains(r.err, call) {
				t.Errorf("%v contains %q: %s", tt.args, call, r.err)
			}
		}
	}
	for _, args := range [][]string{{"top", "letter", "--once"}, {"record", "new", "letter"}, {"simulate", "letter"}, {"replay", "x", "letter"}} {
		if r := nixlring(t.Context(), nil, args...); r.code != exitError || !strings.Contains(r.err, "is a file; specify the directory") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestEachLineOfErrorsStartsWithTheProgramName(t *testing.T) {
	rings(t)
	r := nixlring(t.Context(), nil, "ls", "missing", "missing too")
	if r.code != exitError || strings.Count(r.err, "nixlring: missing") != 2 || strings.Count(r.err, "\n") != 2 {
		t.Errorf("%+v", r)
	}
}
