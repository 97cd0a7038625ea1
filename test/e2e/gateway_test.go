// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// The metrics of two hosts arrive at the backend through a gateway, even if the gateway is down for a
// while.
func TestGatewayRestartLosesNothing(t *testing.T) {
	t.Parallel()
	backend, behind := sink(t, "http", anyPort)
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	gateway := setup{
		sample: "gateway.yaml",
		// A single consumer preserves the order of points, because collections are frequent.
		overlays: []string{soon("otlp_http"), "exporters: {otlp_http: {sending_queue: {num_consumers: 1, batch: {flush_timeout: 50ms}}}}\n"},
		env:      []string{"LISTEN=" + address, "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + behind, "STATE_DIRECTORY=" + t.TempDir()},
	}
	g := gateway.start(t)
	var agents []*agent
	var hosts []*collector
	for host := range 2 {
		dir := t.TempDir()
		for n := range 2 {
			agents = append(agents, newAgent(t, dir, fmt.Sprintf("agent-%d-%d", host, n)))
		}
		hosts = append(hosts, setup{
			sample:   "agent.yaml",
			overlays: []string{every(200 * time.Millisecond), soon("otlp_grpc")},
			env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "STATE_DIRECTORY=" + t.TempDir()},
		}.start(t))
	}
	write := func() {
		for i, a := range agents {
			a.transfer(t, 10+i)
		}
	}
	write()
	backend.awaitTotals(t, want(agents...))
	g.Stop(t, syscall.SIGTERM)
	write()
	hosts[0].WaitFor(t, "Exporting failed")
	g = gateway.start(t)
	backend.awaitTotals(t, want(agents...))
	for _, c := range append(hosts, g) {
		c.Stop(t, syscall.SIGTERM)
	}
}
