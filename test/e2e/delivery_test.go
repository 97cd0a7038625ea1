// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// soon shortens the retry intervals of an exporter, but not the total time.
func soon(exporter string) string {
	return fmt.Sprintf("exporters: {%s: {retry_on_failure: {initial_interval: 100ms, max_interval: 300ms}}}\n", exporter)
}

// The sample has a queue on disk. Every point that was collected while the backend was down arrives
// when it is up, even after restarts of the Collector.
func TestPointsArriveAfterTheBackendWasDown(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	a := newAgent(t, dir, "a")
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	run := setup{
		sample:   "otlp-grpc.yaml",
		overlays: []string{every(100 * time.Millisecond), exportTo("otlp_grpc", "file"), soon("otlp_grpc")},
		env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "STATE_DIRECTORY=" + state},
		file:     filepath.Join(t.TempDir(), "metrics.json"),
	}
	for range 2 { // the backend is down; the second Collector starts with a queue
		c := run.start(t)
		a.transfer(t, 10)
		c.awaitTotals(t, want(a))
		c.WaitFor(t, "Exporting failed")
		a.transfer(t, 10)
		c.Stop(t, syscall.SIGTERM)
	}
	c := run.start(t)
	a.transfer(t, 10)
	backend, _ := sink(t, "grpc", address)
	// The backend sees each point that the Collector has collected.
	must.Eventually(t, func() string {
		collected, arrived := otlpfile.Times(c.collections(t)), otlpfile.Times(backend.collections(t))
		for at := range collected {
			if !arrived[at] {
				return fmt.Sprintf("%d of %d collections arrived", len(arrived), len(collected))
			}
		}
		return ""
	})
	c.Stop(t, syscall.SIGTERM)
	backend.Stop(t, syscall.SIGTERM)
	mustEqual(t, want(a), c.totals(t))
	// Exports that were in progress when a Collector stopped arrive later.
	got, err := otlpfile.SumAnyOrder(backend.collections(t))
	must.OK(t, err)
	mustEqual(t, want(a), got)
}

// Long attributes, which a pod can choose, and hundreds of agents: a request with all of them would
// exceed gRPC's limit of 4 MiB, and a server would reject the data of every agent.
func TestLargeExportIsSplitIntoRequestsThatServersAccept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agents := make([]*agent, 500)
	for i := range agents {
		agents[i] = newAgent(t, dir, fmt.Sprint(i))
		agents[i].transfer(t, 1)
	}
	backend, address := sink(t, "grpc", anyPort)
	c := setup{
		sample: "otlp-grpc.yaml",
		overlays: []string{
			every(time.Second), exportTo("otlp_grpc"), soon("otlp_grpc"),
			fmt.Sprintf("receivers: {nixl_shm: {resource: {host.name: %s}}}", strings.Repeat("x", 10_000)),
		},
		env: []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "STATE_DIRECTORY=" + t.TempDir()},
	}.start(t)
	backend.awaitTotals(t, want(agents...))
	c.Stop(t, syscall.SIGTERM)
	c.noComplaints(t)
	backend.Stop(t, syscall.SIGTERM)
}
