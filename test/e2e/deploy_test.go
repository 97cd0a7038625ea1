// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// From linux/capability.h.
const (
	capDACOverride = 1
	capLease       = 28
)

// docs/deploy.md names two capabilities for agents of several users. With them, the Collector consumes
// rings that only another user may read, even in a directory that is created later, and retires agents
// that have exited.
func TestTwoCapabilitiesAreEnough(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	dir, files := t.TempDir(), t.TempDir()
	backend, address := sink(t, "grpc", anyPort)
	run := setup{
		sample: "agent.yaml",
		overlays: []string{every(100 * time.Millisecond), soon("otlp_grpc"), `
receivers: {nixl_shm: {include: ["**"], resource: {host.name: node-7}, stale_after: 2s}}
extensions:
  health_check: {endpoint: "127.0.0.1:0"}
`},
		env:     []string{rings(dir), "STATE_DIRECTORY=" + files, "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address},
		file:    filepath.Join(files, "metrics.json"),
		program: forNobody(t, files),
		uid:     nobody,
		caps:    []uintptr{capDACOverride, capLease},
	}
	c := run.start(t)
	pod := filepath.Join(dir, "inference-0")
	must.OK(t, os.Mkdir(pod, 0o700))
	a := newAgent(t, pod, "agent")
	must.OK(t, os.Chmod(a.Path(), 0o600))
	a.transfer(t, 10)
	backend.awaitTotals(t, want(a))
	a.transfer(t, 20)
	backend.awaitTotals(t, want(a))
	must.OK(t, a.Close())
	c.WaitFor(t, "agent exited and wrote nothing")
	c.Stop(t, syscall.SIGTERM)
	c.noComplaints(t)

	resource := backend.collections(t)[0].ResourceMetrics().At(0).Resource().Attributes()
	for key, want := range map[string]string{"host.name": "node-7", "nixl.agent.name": "inference-0/agent"} {
		if got, _ := resource.Get(key); got.Str() != want {
			t.Errorf("%s is %q, want %q", key, got.Str(), want)
		}
	}
}
