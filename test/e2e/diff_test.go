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

// Series that not every comparison can say something about.
const (
	utilization = "nixl.telemetry.ring.utilization"
	saturations = "nixl.telemetry.ring.saturations"
	tornGroups  = "nixl.telemetry.ring.torn_groups"
	memoryUsage = "nixl.memory.usage"

	lossyRestarts = "nixl.telemetry.ring.lossy_restarts"
	agentUp       = "nixl.agent.up"
)

// diff says which values differ, a line for each, but for those of the series
// that it is told to leave out. The highest fill of a ring and whether its
// agent runs are always left out: they depend on when somebody looks.
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

// equal compares values. A sum of floating-point numbers depends on their
// order, in its last digits.
func equal(a, b otlpfile.Value) bool {
	return cmp.Equal(a, b, cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateEmpty())
}

// merged has the keys of both.
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
