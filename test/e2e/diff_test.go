// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// Series that some comparisons exclude.
const (
	utilization = "nixl.telemetry.ring.utilization"
	saturations = "nixl.telemetry.ring.saturations"
	tornGroups  = "nixl.telemetry.ring.torn_groups"
	memoryUsage = "nixl.memory.usage"

	agentUp = "nixl.agent.up"
)

// diff returns a line for each value that differs, except for the series in but. It always excludes
// utilization and agentUp, which depend on timing.
func diff(want, got otlpfile.Totals, but ...string) string {
	var lines []string
	but = append(but, utilization, agentUp)
	for agent := range merged(want, got) {
		if want[agent] == nil || got[agent] == nil {
			lines = append(lines, fmt.Sprintf("%s: want %d series, got %d", agent, len(want[agent]), len(got[agent])))
			continue
		}
		for series := range merged(want[agent], got[agent]) {
			w, wanted := want[agent][series]
			g, there := got[agent][series]
			if slices.Contains(but, series) || wanted && there && equal(w, g) {
				continue
			}
			line := agent + ": " + series + ": "
			switch {
			case !there:
				line += fmt.Sprintf("want %v, got none", w)
			case !wanted:
				line += fmt.Sprintf("want none, got %v", g)
			default:
				line += fmt.Sprintf("want %v, got %v", w, g)
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	const most = 20
	if n := len(lines); n > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(lines, "\n")
}

// equal compares values approximately, because sums of floating-point numbers depend on their order.
func equal(a, b otlpfile.Value) bool {
	return cmp.Equal(a, b, cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateEmpty())
}

// merged returns a map with the keys of both maps.
func merged[V any](a, b map[string]V) map[string]V {
	both := maps.Clone(a)
	if both == nil {
		both = make(map[string]V)
	}
	maps.Copy(both, b)
	return both
}

// mustEqual fails the test if totals differ.
func mustEqual(t *testing.T, want, got otlpfile.Totals, but ...string) {
	t.Helper()
	if d := diff(want, got, but...); d != "" {
		t.Fatal(d)
	}
}
