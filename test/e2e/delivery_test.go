// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// The sample has a queue on disk. Every point that was collected while the backend was down arrives
// when it is up, even after restarts of the Collector.
func TestPointsArriveAfterTheBackendWasDown(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	a := newAgent(t, dir, "a")
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	run := otelcol.Setup{
		Sample:   "otlp-grpc.yaml",
		Overlays: []string{otelcol.Every(100 * time.Millisecond), otelcol.ExportTo("otlp_grpc", "file"), soon("otlp_grpc")},
		Env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "STATE_DIRECTORY=" + state},
		File:     filepath.Join(t.TempDir(), "metrics.json"),
	}
	for range 2 { // the backend is down; the second Collector starts with a queue
		c := run.Start(t)
		a.transfer(t, 10)
		c.AwaitTotals(t, want(a))
		c.WaitFor(t, "Exporting failed")
		a.transfer(t, 10)
		c.Stop(t, syscall.SIGTERM)
	}
	c := run.Start(t)
	a.transfer(t, 10)
	backend := otlpfile.Listen(t, address)
	// The backend sees each point that the Collector has collected.
	must.Eventually(t, func() string {
		collected, arrived := otlpfile.Times(c.Collections(t)), otlpfile.Times(backend.Collections())
		maps.DeleteFunc(arrived, func(at pcommon.Timestamp, _ bool) bool { return !collected[at] }) // the newest
		return cmp.Diff(collected, arrived)
	})
	c.Stop(t, syscall.SIGTERM)
	mustEqual(t, want(a), c.Totals(t))
	mustEqual(t, want(a), backend.Totals(t))
}

// The metrics of two hosts arrive at the backend through a gateway, even if the gateway is down for a
// while.
func TestGatewayRestartLosesNothing(t *testing.T) {
	t.Parallel()
	backend := otlpfile.NewSink(t)
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	gateway := otelcol.Setup{
		Sample:   "gateway.yaml",
		Overlays: []string{soon("otlp_http"), "exporters: {otlp_http: {sending_queue: {batch: {flush_timeout: 50ms}}}}\n"},
		Env:      []string{"LISTEN=" + address, "OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL(), "STATE_DIRECTORY=" + t.TempDir()},
	}
	g := gateway.Start(t)
	var agents []*agent
	var hosts []*otelcol.Collector
	for host := range 2 {
		dir := t.TempDir()
		agents = append(agents, newAgent(t, dir, fmt.Sprintf("a-%d", host)), newAgent(t, dir, fmt.Sprintf("b-%d", host)))
		hosts = append(hosts, otelcol.Setup{
			Sample:   "agent.yaml",
			Overlays: []string{otelcol.Every(200 * time.Millisecond), soon("otlp_grpc")},
			Env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address},
		}.Start(t))
	}
	write := func() {
		for i, a := range agents {
			a.transfer(t, 10+i)
		}
	}
	write()
	backend.AwaitTotals(t, want(agents...))
	g.Stop(t, syscall.SIGTERM)
	write()
	hosts[0].WaitFor(t, "Exporting failed")
	g = gateway.Start(t)
	backend.AwaitTotals(t, want(agents...))
	for _, c := range append(hosts, g) {
		c.Stop(t, syscall.SIGTERM)
	}
}
