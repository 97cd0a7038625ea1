// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
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

// fleet is a group of hosts with agents.
type fleet struct {
	agents []*agent
	dirs   []string // directories of the hosts
	rounds int
}

func newFleet(t *testing.T, hosts, agents int) *fleet {
	t.Helper()
	f := &fleet{}
	for host := range hosts {
		f.dirs = append(f.dirs, t.TempDir())
		for n := range agents {
			f.agents = append(f.agents, newAgent(t, f.dirs[host], fmt.Sprintf("agent-%d-%d", host, n)))
		}
	}
	return f
}

// write makes each agent write a different number of transfers.
func (f *fleet) write(t *testing.T) {
	t.Helper()
	for i, a := range f.agents {
		a.transfer(t, 1+i+f.rounds)
	}
	f.rounds++
}

// start starts the Collectors of the hosts with a list of gateways. Not every machine has a name for several
// of its addresses.
func (f *fleet) start(t *testing.T, gateways []*gateway) (hosts []*collector) {
	t.Helper()
	var addresses []string
	for _, g := range gateways {
		addresses = append(addresses, g.address)
	}
	resolver := fmt.Sprintf(`
exporters:
  load_balancing:
    resolver: {dns: null, static: {hostnames: [%s]}}
    protocol: {otlp: {retry_on_failure: {initial_interval: 100ms, max_interval: 300ms}}}
`, strings.Join(addresses, ", "))
	for _, dir := range f.dirs {
		hosts = append(hosts, setup{
			program:  fullBin,
			sample:   "scale/agent-load-balancing.yaml",
			overlays: []string{every(200 * time.Millisecond), resolver},
			env:      []string{rings(dir), "STATE_DIRECTORY=" + t.TempDir()},
		}.start(t))
	}
	return hosts
}

// gateway is a Collector between hosts and a backend, which can be started again.
type gateway struct {
	*collector

	setup   setup
	address string
}

// twoGateways starts two gateways with different addresses and storage.
func twoGateways(t *testing.T, s setup) (gateways []*gateway) {
	t.Helper()
	env := s.env
	for range 2 {
		address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
		s.env = append([]string{"LISTEN=" + address, "STATE_DIRECTORY=" + t.TempDir()}, env...)
		s.file = filepath.Join(t.TempDir(), "metrics.json")
		gateways = append(gateways, &gateway{s.start(t), s, address})
	}
	return gateways
}

func (g *gateway) startAgain(t *testing.T) {
	t.Helper()
	g.collector = g.setup.start(t)
}

// Each agent's points pass through one gateway. If this gateway is down, they wait for it, while points of
// other agents arrive.
func TestScaleLoadBalancingPinsAgentsToAGateway(t *testing.T) {
	needFull(t)
	t.Parallel()
	backend, behind := sink(t, "http", anyPort)
	backend.file.AnyOrder() // an export in progress when a gateway stops may arrive twice
	gateways := twoGateways(t, setup{
		sample: "gateway.yaml",
		overlays: []string{
			soon("otlp_http"), exportTo("otlp_http", "file"),
			"exporters: {otlp_http: {sending_queue: {num_consumers: 1, batch: {flush_timeout: 50ms}}}}\n",
		},
		env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + behind},
	})
	// Enough agents to ensure that each gateway has some.
	f := newFleet(t, 2, 16)
	f.write(t)
	hosts := f.start(t, gateways)
	backend.awaitTotals(t, want(f.agents...))
	first, second := through(t, gateways[0]), through(t, gateways[1])
	t.Logf("%d agents through the first gateway, %d through the second", len(first), len(second))
	if len(first) == 0 || len(second) == 0 || len(first)+len(second) != len(f.agents) {
		t.Fatalf("of %d agents, these used the first gateway: %v\nand these the second: %v", len(f.agents), first, second)
	}

	gateways[0].Stop(t, syscall.SIGTERM)
	f.write(t)
	others := slices.DeleteFunc(slices.Clone(f.agents), func(a *agent) bool { return slices.Contains(first, a.Path()) })
	backend.await(t, func(got otlpfile.Totals) string {
		maps.DeleteFunc(got, func(path string, _ otlpfile.Series) bool { return slices.Contains(first, path) })
		return diff(want(others...), got)
	})
	of := slices.Index(f.dirs, filepath.Dir(first[0]))
	hosts[of].WaitFor(t, "Exporting failed")
	gateways[0].startAgain(t)
	backend.awaitTotals(t, want(f.agents...))
	for i, before := range [][]string{first, second} {
		if after := through(t, gateways[i]); !slices.Equal(before, after) {
			t.Errorf("gateway %d had the agents %v, and %v at the end", i, before, after)
		}
	}
	for _, c := range append(hosts, gateways[0].collector, gateways[1].collector) {
		c.Stop(t, syscall.SIGTERM)
	}
}

// through returns the paths of the agents whose points have passed through a gateway.
func through(t *testing.T, g *gateway) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(instances(g.collections(t))))
}

func TestScaleSampleResolvesGatewaysByName(t *testing.T) {
	needFull(t)
	t.Parallel()
	const name = "localhost"
	ips, err := new(net.Resolver).LookupHost(t.Context(), name)
	if err != nil {
		t.Skip(err)
	}
	port := fmt.Sprint(proc.FreePort(t))
	var sinks []*collector // one for each address of the name
	for _, ip := range ips {
		s, _ := sink(t, "grpc", net.JoinHostPort(ip, port))
		sinks = append(sinks, s)
	}
	f := newFleet(t, 1, 4)
	f.write(t)
	host := setup{
		program:  fullBin,
		sample:   "scale/agent-load-balancing.yaml",
		overlays: []string{every(200 * time.Millisecond)},
		env:      []string{rings(f.dirs[0]), "GATEWAYS=" + name, "GATEWAYS_PORT=" + port, "STATE_DIRECTORY=" + t.TempDir()},
	}.start(t)
	must.Eventually(t, func() string {
		got := make(otlpfile.Totals)
		for _, s := range sinks {
			maps.Copy(got, s.totals(t))
		}
		return diff(want(f.agents...), got)
	})
	host.Stop(t, syscall.SIGTERM)
	host.noComplaints(t)
}
