// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"syscall"
	"testing"
	"time"
)

// Agents that restart on their rings, each time as another release of NIXL, lose
// nothing and continue with the same totals, if their rings are drained often: a
// restart discards what is still in a ring.
func TestLiveRestarts(t *testing.T) {
	t.Parallel()
	const long = 6 * time.Second
	dir := t.TempDir()
	c := setup{
		sample:   "local.yaml",
		overlays: []string{every(time.Second), exportTo("file"), "receivers: {nixl_shm: {run_interval: 10ms}}"},
		env:      []string{rings(dir), "PORT=0"},
	}.start(t)
	report := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "500",
		"--restart-every", "900ms", "--seed", "2", "--duration", long.String()).wait(t, long)
	nothingDropped(t, report)
	c.Stop(t, syscall.SIGTERM)
	for path, a := range report.Agents {
		if a.Starts < 6 {
			t.Errorf("%s started %d times, want 6 or more", path, a.Starts)
		}
	}
	// An agent has torn groups only if the newest of its lives was of layout
	// v4, or if one was torn; what a life has registered goes with it.
	got := c.totals(t)
	mustEqual(t, wantReport(report), got, lossyRestarts, tornGroups, memoryUsage)
	for path, series := range got {
		if n := series[tornGroups].Int; n != 0 {
			t.Errorf("%s: %d torn groups, want 0", path, n)
		}
	}
}
