// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/backend"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// What storage costs: the processor time of two Collectors at the same load,
// at the same time, one with storage and one without. It is a measurement, and
// takes a machine that has nothing else to do, so that it is asked for by
// CHAOS_COST.
func TestStorageCost(t *testing.T) {
	if os.Getenv("CHAOS_COST") == "" {
		t.Skip("CHAOS_COST isn't set")
	}
	const (
		long  = 20 * time.Second
		warm  = 3 * time.Second
		ratio = 1.5
		felt  = 0.01 // of a processor
	)
	names := []string{"without storage", "with storage", "with storage and fsync"}
	var collectors []collector
	var agents []*proc.Process
	for i := range names {
		rings := t.TempDir()
		// As much as real ones get into a ring.
		f := fleet{"agent", []string{"--agents", "8", "--layout", "v4", "--rate", "10000"}}
		agents = append(agents, f.start(t, rings, 1))
		collectors = append(collectors, costly(t, rings, i > 0, i > 1))
	}
	pass(t, warm)
	before := used(t, collectors)
	pass(t, long)
	after := used(t, collectors)
	for _, a := range agents {
		stop(t, a)
	}
	var cost []float64
	for i, name := range names {
		cost = append(cost, (after[i]-before[i]).Seconds()/long.Seconds())
		t.Logf("%s: %.1f %% of a processor", name, 100*cost[i])
	}
	t.Logf("ratio %.2f, with fsync %.2f", cost[1]/cost[0], cost[2]/cost[0])
	// To count an event costs so little that a few transactions a second make a
	// ratio of any size: it says something only of what can be felt.
	if cost[1] > ratio*cost[0] && cost[1]-cost[0] > felt {
		t.Errorf("storage makes it %.2f times as expensive, want %.2f at most", cost[1]/cost[0], ratio)
	}
}

// costly starts a Collector, at the intervals that it has by itself.
func costly(t *testing.T, rings string, storage, fsync bool) collector {
	t.Helper()
	overlays := []string{fmt.Sprintf(`
receivers:
  nixl_shm: {directories: [%q]}
exporters:
  otlp_http: {endpoint: %q}
service: {pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}}
`, rings, backend.NewHTTP(t).URL())}
	if storage {
		overlays = append(overlays, fmt.Sprintf(`
extensions:
  file_storage: {directory: %q, fsync: %v}
receivers:
  nixl_shm: {storage: file_storage}
service: {extensions: [file_storage]}
`, t.TempDir(), fsync))
	}
	return setup{overlays: overlays}.start(t)
}

func used(t *testing.T, list []collector) (times []time.Duration) {
	t.Helper()
	for _, c := range list {
		times = append(times, c.CPU(t))
	}
	return times
}
