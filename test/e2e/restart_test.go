// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// Events that agents write while no Collector runs wait in the rings. Without storage, counters start from
// zero with a new start time, and the counts of all runs add up.
func TestCollectorRestartLosesNothing(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "metrics.json")
	a, b := newAgent(t, dir, "a"), newAgent(t, dir, "b")
	run := setup{
		sample:   "local.yaml",
		overlays: []string{every(100 * time.Millisecond), exportTo("file")},
		env:      []string{rings(dir), "PORT=0"},
		file:     file,
	}
	const runs = 3
	for n := range runs {
		a.transfer(t, 10+n) // before
		c := run.start(t)
		a.transfer(t, 20+n) // while it runs
		b.transfer(t, 1+n)
		c.awaitTotals(t, want(a, b))
		a.transfer(t, 30+n) // right before it stops
		c.Stop(t, syscall.SIGTERM)
		c.noComplaints(t)
		mustEqual(t, want(a, b), c.totals(t))
	}
	list, err := otlpfile.NewFile(file).Collections()
	must.OK(t, err)
	for path, starts := range otlpfile.Starts(list) {
		if len(starts) != runs {
			t.Errorf("%s: %d start times, want %d", path, len(starts), runs)
		}
	}
	// The identity of an agent doesn't change.
	if got := instances(list); len(got) != 2 || len(got[a.Path()]) != 1 || len(got[b.Path()]) != 1 {
		t.Errorf("instances by agent: %v, want one each", got)
	}
}

// A backend that adds up all series counts each event once, although the name of the cluster changes while the agent runs.
func TestChangeOfTheResourceCountsEventsOnce(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "metrics.json")
	a := newAgent(t, dir, "a")
	run := setup{
		sample:   "agent.yaml",
		overlays: []string{every(100 * time.Millisecond), exportTo("file"), `receivers: {nixl_shm: {resource: {k8s.cluster.name: "${env:CLUSTER}"}}}`},
		file:     file,
	}
	clusters := []string{"1", "2", "2", "1"}
	state := "STATE_DIRECTORY=" + t.TempDir()
	var c *collector
	for n, cluster := range clusters {
		run.env = []string{rings(dir), state, "METRICS_PORT=0", "CLUSTER=" + cluster}
		c = run.start(t)
		a.transfer(t, 10+n)
		c.awaitTotals(t, want(a), memoryUsage)
		a.transfer(t, 20+n) // maybe not exported under this name
		if n == 1 {
			c.Kill(t)
		} else {
			c.Stop(t, syscall.SIGTERM)
		}
		a.transfer(t, 30+n)
	}
	c = run.start(t)
	c.awaitTotals(t, want(a), memoryUsage)
	c.Stop(t, syscall.SIGTERM)
	mustEqual(t, want(a), c.totals(t), memoryUsage)
	for path, starts := range otlpfile.Starts(c.collections(t)) {
		if len(starts) != 3 {
			t.Errorf("%s: %d start times, want one for each change of the cluster", path, len(starts))
		}
	}
}

// instances returns the values of service.instance.id for each agent.
func instances(list []pmetric.Metrics) map[string][]string {
	ids := make(map[string][]string)
	for _, m := range list {
		for _, rm := range m.ResourceMetrics().All() {
			agent, id := otlpfile.Agent(rm.Resource()), ""
			if v, ok := rm.Resource().Attributes().Get("service.instance.id"); ok {
				id = v.Str()
			}
			if !slices.Contains(ids[agent], id) {
				ids[agent] = append(ids[agent], id)
			}
		}
	}
	return ids
}
