// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// needFull skips a test of the samples for many hosts unless `make validate` has built the full
// Collector.
func needFull(t *testing.T) {
	t.Helper()
	if fullBin == "" {
		t.Skip("OTELCOL_NIXL_FULL isn't set")
	}
}

// All points of an agent pass through one of the gateways, because only then are they in order. The
// name of a machine with two addresses stands for the gateways.
func TestScaleLoadBalancingPinsAgentsToAGateway(t *testing.T) {
	needFull(t)
	t.Parallel()
	const name = "localhost"
	ips, err := new(net.Resolver).LookupHost(t.Context(), name)
	if err != nil {
		t.Skip(err)
	}
	port := fmt.Sprint(proc.FreePort(t))
	var gateways []*otlpfile.Sink
	for _, ip := range ips {
		gateways = append(gateways, otlpfile.Listen(t, net.JoinHostPort(ip, port)))
	}
	dir := t.TempDir()
	agents := make([]*agent, 16)
	for i := range agents {
		agents[i] = newAgent(t, dir, fmt.Sprint(i))
		agents[i].transfer(t, 1+i)
	}
	host := otelcol.Setup{
		Program:  fullBin,
		Sample:   "scale/agent-load-balancing.yaml",
		Overlays: []string{otelcol.Every(200 * time.Millisecond)},
		Env:      []string{rings(dir), "GATEWAYS=" + name, "GATEWAYS_PORT=" + port},
	}.Start(t)
	for range 2 {
		must.Eventually(t, func() string {
			got, n := make(otlpfile.Totals), 0
			for _, g := range gateways {
				totals := g.Totals(t)
				n += len(totals)
				maps.Copy(got, totals)
			}
			if n != len(got) {
				t.Fatal("two gateways have received points of the same agent")
			}
			return otlpfile.Diff(want(agents...), got)
		})
		for _, a := range agents {
			a.transfer(t, 1)
		}
	}
	host.Stop(t, syscall.SIGTERM)
	host.NoComplaints(t)
}
