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

	"github.com/nixl-otel/nixl-otel/internal/simulate"
)

// liveTime is how long the live test simulates.
func liveTime(t *testing.T) time.Duration {
	t.Helper()
	if s := os.Getenv("NIXL_E2E_LIVE"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("NIXL_E2E_LIVE: %v", err)
		}
		return d
	}
	if testing.Short() {
		return 10 * time.Second
	}
	return 30 * time.Second
}

// Agents of all layouts at 10,000 transfers/s each, which is as much as real
// agents get into a ring at NIXL's defaults: every event is counted, here and
// by the Collector behind.
//
// Such an agent fills its ring in one run interval, and drops what comes before
// somebody has read it. On a machine that doesn't let processes run for that
// long nobody can help it, and the test begins anew. What did reach a ring has
// to be counted even then.
func TestLive(t *testing.T) {
	t.Parallel()
	// The stalls of this process tell of those of the others, no more.
	const attempts, tooLong = 5, simulate.DefaultRunInterval / 4
	for range attempts {
		lost, stall := live(t, liveTime(t))
		if lost == 0 {
			return
		}
		if stall < tooLong {
			t.Fatalf("%d events found their ring full, though this process was held up for %v at most", lost, stall)
		}
		t.Logf("%d events found their ring full, and this process was held up for %v", lost, stall)
	}
	t.Fatalf("in %d attempts this machine didn't let processes run when they had to", attempts)
}

// live simulates for some time, and returns how many events found their ring
// full, and for how long a process had to wait at worst.
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
	t.Logf("%d transfers in %v; this process was held up for %v at most", report.Sum.Operations, time.Since(begun), stall)
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
	want := wantReport(report)
	// What a queue on disk still holds when the Collector stops, the next one
	// sends: so wait first.
	backend.awaitTotals(t, want, but...)
	c.Stop(t, syscall.SIGTERM)
	backend.Stop(t, syscall.SIGTERM)
	mustEqual(t, want, c.totals(t), but...)
	mustEqual(t, want, backend.totals(t), but...)
	return lost, stall
}

// watchStalls measures how long a process may have to wait for a processor:
// where that nears the agents' run interval, no reader can keep up. The
// function that it returns gives the longest wait.
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
