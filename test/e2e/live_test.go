// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// liveTime returns how long the live test simulates agents.
func liveTime(t *testing.T) time.Duration {
	t.Helper()
	if s := os.Getenv("NIXL_E2E_LIVE"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("NIXL_E2E_LIVE: %v", err)
		}
		return d
	}
	return 10 * time.Second
}

// Agents of all layouts make 10,000 transfers/s each, about the maximum with NIXL's defaults. Both the
// Collector and the backend must have counted every event.
//
// Such an agent fills its ring in one run interval, and drops further events until the ring is drained. If
// the machine is so busy that processes can't run for that long, or if the Collector finds the new rings only
// after two run intervals, the test repeats. Even then, all events that reached a ring must be counted. To
// repeat less often, the test doesn't run in parallel with others.
func TestAgentsAtFullSpeedAreCountedExactly(t *testing.T) {
	const attempts = 6
	for range attempts {
		lost, stall := live(t, liveTime(t))
		if lost == 0 {
			return
		}
		t.Logf("%d events were dropped, and this process was stalled for %v", lost, stall)
	}
	t.Fatalf("events were dropped in each of %d attempts", attempts)
}

// live simulates agents for some time, and returns the number of dropped events and the longest stall of
// this process.
func live(t *testing.T, long time.Duration) (lost uint64, stall time.Duration) {
	t.Helper()
	dir := t.TempDir()
	backend, address := sink(t, "grpc", anyPort)
	c := setup{
		sample:   "otlp-grpc.yaml",
		overlays: []string{every(time.Second), exportTo("otlp_grpc", "file")},
		env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address},
	}.start(t)

	begun, longest := time.Now(), watchStalls()
	report := startSimulator(t, dir, "--layout", "mixed", "--agents", "5",
		"--rate", "10000", "--error-rate", "0.01", "--seed", "1", "--duration", long.String()).wait(t, long)
	stall = longest()
	t.Logf("%d transfers in %v; this process was stalled for at most %v", report.Sum.Operations, time.Since(begun), stall)
	if want := uint64(5 * 10000 * long.Seconds()); report.Sum.Operations != want {
		t.Errorf("%d transfers were simulated, want %d", report.Sum.Operations, want)
	}

	var but []string
	if lost = report.Sum.Dropped(); lost > 0 {
		but = []string{saturations, tornGroups}
	} else {
		defer c.noComplaints(t)
		defer backend.noComplaints(t)
	}
	want := wantReport(t, report)
	// Wait before stopping, because a queue on disk isn't flushed on shutdown.
	backend.awaitTotals(t, want, but...)
	c.Stop(t, syscall.SIGTERM)
	backend.Stop(t, syscall.SIGTERM)
	mustEqual(t, want, c.totals(t), but...)
	mustEqual(t, want, backend.totals(t), but...)
	return lost, stall
}

// watchStalls measures how long this process has to wait for a CPU. If this is close to the agents' run
// interval, no reader can keep up. The returned function returns the longest wait.
func watchStalls() func() time.Duration {
	const every = 5 * time.Millisecond
	done, longest := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		last, most := time.Now(), time.Duration(0)
		for {
			select {
			case <-done:
				longest <- most
				return
			case <-ticker.C:
				now := time.Now()
				most = max(most, now.Sub(last)-every)
				last = now
			}
		}
	}()
	return sync.OnceValue(func() time.Duration {
		close(done)
		return <-longest
	})
}
