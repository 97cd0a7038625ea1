// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// nobody is an unprivileged user.
const nobody = 65534

// forNobody makes nobody the owner of a directory of the test, and copies the Collector to it.
func forNobody(t *testing.T, dir string) (program string) {
	t.Helper()
	// The test's temporary directory isn't accessible to other users.
	must.OK(t, os.Chmod(filepath.Dir(dir), 0o755))
	must.OK(t, os.Chown(dir, nobody, nobody))
	program = filepath.Join(dir, "otelcol-nixl")
	// A child that another test starts at this time would inherit a file that is open for writing, and a
	// program that is open for writing can't be started. So another process copies it.
	if out, err := exec.CommandContext(t.Context(), "install", "-m", "755", built.Collector, program).CombinedOutput(); err != nil {
		t.Fatalf("copy the Collector: %v\n%s", err, out)
	}
	return program
}

// The Collector logs once which user can consume the ring.
func TestCollectorOfAnotherUserMayOnlyObserve(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	dir, files := t.TempDir(), t.TempDir()
	program := forNobody(t, files)
	a := newAgent(t, dir, "agent")
	a.transfer(t, 10)
	before := ringtest.ReadHeader(t, a.Path())
	theirs := newAgent(t, dir, "theirs")
	theirs.transfer(t, 20)
	must.OK(t, os.Chown(theirs.Path(), nobody, nobody))
	run := setup{
		sample:   "local.yaml",
		overlays: []string{every(100 * time.Millisecond), exportTo("file")},
		env:      []string{rings(dir), "PORT=0"},
		file:     filepath.Join(files, "metrics.json"),
		program:  program,
		uid:      nobody,
	}
	c := run.start(t)
	c.WaitFor(t, "no permission to consume")
	c.awaitTotals(t, want(theirs))
	c.Stop(t, syscall.SIGTERM)
	var entries []built.Entry
	for _, e := range built.Entries(c.Process) {
		if e.Path == a.Path() {
			entries = append(entries, e)
		}
	}
	if len(entries) != 1 || !strings.Contains(entries[0].Error, "run as uid 0 or root, or observe instead") {
		t.Errorf("want one entry with the uid: %v", entries)
	}

	run.overlays = append(run.overlays, "receivers: {nixl_shm: {mode: observe, include: [agent]}}")
	c = run.start(t)
	c.awaitTotals(t, want(a, theirs)) // each Collector has counted one of them
	c.Stop(t, syscall.SIGTERM)
	if d := cmp.Diff(before, ringtest.ReadHeader(t, a.Path())); d != "" {
		t.Errorf("the ring has changed (-before +after):\n%s", d)
	}
}
