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

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// nobody is an unprivileged user.
const nobody = 65534

// asNobody makes a Collector run as an unprivileged user, from a directory of its own.
func asNobody(t *testing.T, run *otelcol.Setup) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	dir := t.TempDir()
	// The test's temporary directory isn't accessible to other users.
	must.OK(t, os.Chmod(filepath.Dir(dir), 0o755))
	must.OK(t, os.Chown(dir, nobody, nobody))
	run.UID, run.Program, run.File = nobody, filepath.Join(dir, "otelcol-nixl"), filepath.Join(dir, "metrics.json")
	run.Env = append(run.Env, "STATE_DIRECTORY="+dir)
	// A child that another test starts at this time would inherit a file that is open for writing, and a
	// program that is open for writing can't be started. So another process copies it.
	if out, err := exec.CommandContext(t.Context(), "install", "-m", "755", built.Collector, run.Program).CombinedOutput(); err != nil {
		t.Fatalf("copy the Collector: %v\n%s", err, out)
	}
}

// The Collector logs once which user can consume the ring.
func TestCollectorOfAnotherUserMayOnlyObserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(100 * time.Millisecond), otelcol.ExportTo("file")},
		Env:      []string{rings(dir), "PORT=0"},
	}
	asNobody(t, &run)
	a, theirs := newAgent(t, dir, "agent"), newAgent(t, dir, "theirs")
	a.transfer(t, 10)
	theirs.transfer(t, 20)
	must.OK(t, os.Chown(theirs.Path(), nobody, nobody))
	before := ringtest.ReadHeader(t, a.Path())
	c := run.Start(t)
	c.WaitFor(t, "no permission to consume")
	c.AwaitTotals(t, want(theirs))
	c.Stop(t, syscall.SIGTERM)
	var said []string
	for _, e := range c.Entries() {
		if e.Path == a.Path() {
			said = append(said, e.Error)
		}
	}
	if text := strings.Join(said, "\n"); strings.Count(text, "run as uid 0 or root, or observe instead") != 1 || len(said) != 1 {
		t.Errorf("want one entry with the uid: %s", text)
	}

	run.Overlays = append(run.Overlays, "receivers: {nixl_shm: {mode: observe, include: [agent]}}")
	c = run.Start(t)
	c.AwaitTotals(t, want(a, theirs)) // each Collector has counted one of them
	c.Stop(t, syscall.SIGTERM)
	if d := cmp.Diff(before, ringtest.ReadHeader(t, a.Path())); d != "" {
		t.Errorf("the ring has changed (-before +after):\n%s", d)
	}
}

// docs/deploy.md names two capabilities for agents of several users. With them, the Collector consumes
// rings that only another user may read, even in a directory that is created later, and retires agents
// that have exited.
func TestTwoCapabilitiesAreEnough(t *testing.T) {
	t.Parallel()
	dir, backend := t.TempDir(), otlpfile.NewSink(t)
	const dacOverride, lease = 1, 28 // from linux/capability.h
	run := otelcol.Setup{
		Sample: "agent.yaml",
		Overlays: []string{otelcol.Every(100 * time.Millisecond), soon("otlp_grpc"), `
receivers: {nixl_shm: {include: ["**"], resource: {host.name: node-7}, stale_after: 2s}}
extensions:
  health_check: {endpoint: "127.0.0.1:0"}
`},
		Env:  []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL()},
		Caps: []uintptr{dacOverride, lease},
	}
	asNobody(t, &run)
	c := run.Start(t)
	pod := filepath.Join(dir, "inference-0")
	must.OK(t, os.Mkdir(pod, 0o700))
	a := newAgent(t, pod, "agent")
	must.OK(t, os.Chmod(a.Path(), 0o600))
	a.transfer(t, 10)
	backend.AwaitTotals(t, want(a))
	a.transfer(t, 20)
	backend.AwaitTotals(t, want(a))
	must.OK(t, a.Close())
	c.WaitFor(t, "agent exited and wrote nothing")
	c.Stop(t, syscall.SIGTERM)
	c.NoComplaints(t)
	resources, err := backend.Resources()
	must.OK(t, err)
	for _, r := range resources {
		if d := cmp.Diff([]string{"node-7", "inference-0/agent"}, []string{r.Attributes["host.name"], r.Attributes["nixl.agent.name"]}); d != "" {
			t.Errorf("host and agent (-want +got):\n%s", d)
		}
	}
}
