// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package making lets tests run targets of the Makefile with programs that are
// already built.
package making

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Start starts make in a copy of the source tree that also contains programs:
// it maps their paths in the tree to the built files. Make treats the targets
// in old as up to date. It stores temporary files in tmp.
func Start(tb testing.TB, tmp string, programs map[string]string, old []string, args ...string) *proc.Process {
	tb.Helper()
	tree, root := tb.TempDir(), ringtest.Root(tb)
	links := map[string]string{}
	for _, name := range []string{"Makefile", "scripts", "examples", "dashboards"} {
		links[name] = filepath.Join(root, name)
	}
	maps.Copy(links, programs)
	for link, to := range links {
		link = filepath.Join(tree, link)
		must.OK(tb, os.MkdirAll(filepath.Dir(link), 0o755))
		must.OK(tb, os.Symlink(to, link))
	}
	for i := range old {
		args = append([]string{"--old-file=" + old[i]}, args...)
	}
	cmd := exec.CommandContext(tb.Context(), "make", args...)
	cmd.Dir = tree
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp}
	return proc.Start(tb, cmd)
}

// NothingLeft fails the test if a finished run left processes or files behind.
func NothingLeft(tb testing.TB, p *proc.Process, tmp string) {
	tb.Helper()
	if left := proc.Session(p.PID()); len(left) > 0 {
		tb.Errorf("processes are still running: %v", left)
	}
	files, err := os.ReadDir(tmp)
	must.OK(tb, err)
	if len(files) > 0 {
		tb.Errorf("TMPDIR still has files: %v", files)
	}
}
