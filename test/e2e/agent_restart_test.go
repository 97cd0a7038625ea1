// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"syscall"
	"testing"
	"time"
)

// Each restart uses the layout of another NIXL release. A restart discards the events in the ring, so
// the rings are drained often.
func TestTotalsContinueWhenAgentsRestart(t *testing.T) {
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
	// The series of torn groups exists only if the newest life has layout V4 or a
	// group was torn. At the end of a life, its memory is released.
	got := c.totals(t)
	mustEqual(t, wantReport(report), got, lossyRestarts, tornGroups, memoryUsage)
	for path, series := range got {
		if n := series[tornGroups].Int; n != 0 {
			t.Errorf("%s: %d torn groups, want 0", path, n)
		}
	}
}
