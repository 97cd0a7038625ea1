// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

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

func TestAgentsWithTheSameNameInTwoDirectoriesAreSeparate(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	a, b := newAgent(t, one, "decode-0"), newAgent(t, two, "decode-0")
	a.transfer(t, 3)
	b.transfer(t, 500)
	a.push(t, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	c := setup{
		sample: "local.yaml",
		overlays: []string{
			every(100 * time.Millisecond), exportTo("file"),
			fmt.Sprintf("receivers: {nixl_shm: {directories: [%q, %q]}}", one, two),
		},
		env: []string{"PORT=0"},
	}.start(t)
	c.awaitTotals(t, want(a, b))
	b.transfer(t, 7)
	c.Stop(t, syscall.SIGTERM)
	mustEqual(t, want(a, b), c.totals(t))
	c.noComplaints(t)

	ids := instances(c.collections(t))
	if len(ids[a.Path()]) != 1 || len(ids[b.Path()]) != 1 || ids[a.Path()][0] == ids[b.Path()][0] {
		t.Errorf("instances by agent: %v, want one different instance for each", ids)
	}
}

// Names may contain spaces and other alphabets. A slash stands for a subdirectory, which a pattern must
// include.
func TestAgentNameIsThePathOfItsRing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "rack 7"), 0o755); err != nil {
		t.Fatal(err)
	}
	var agents []*agent
	names := []string{"a b:c", "Präfill-β", "rack 7/node 3"}
	for i, name := range names {
		a := newAgent(t, dir, name)
		a.transfer(t, 1+i)
		agents = append(agents, a)
	}
	c := setup{
		sample: "local.yaml",
		overlays: []string{
			every(100 * time.Millisecond), exportTo("file"),
			`receivers: {nixl_shm: {include: ["**"], resource_attributes: {nixl.telemetry.path: {enabled: false}}}}`,
		},
		env: []string{rings(dir), "PORT=0"},
	}.start(t)
	named := make(otlpfile.Totals)
	for i, a := range agents {
		named[names[i]] = a.want()
	}
	c.awaitTotals(t, named)
	c.Stop(t, syscall.SIGTERM)
	c.noComplaints(t)
}
