// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/backend"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
)

// The backend fails in several ways while agents write and the queues of the sample configurations
// fill up. When it answers again, the totals are complete.
//
// Time is compressed by a factor of 100: the collection interval is 100 ms instead of 10 s, and
// retry intervals are shorter. So an outage of 10 s stands for a quarter of an hour.
func TestOutageOfTheBackendLosesNothingAndMemoryIsLimited(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]outage{
		"http": {backend.NewHTTP, "otlp-http.yaml", "otlp_http"},
		"grpc": {backend.NewGRPC, "otlp-grpc.yaml", "otlp_grpc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.run(t, duration(t, "CHAOS_DURATION", 10*time.Second))
		})
	}
}

type outage struct {
	backend  func(testing.TB) *backend.Backend
	sample   string
	exporter string
}

func (o outage) run(t *testing.T, long time.Duration) {
	rings := t.TempDir()
	to := o.backend(t)
	agents := fleet{"agent", []string{"--rate", "500"}}.start(t, rings, 1)
	c := setup{
		sample: o.sample,
		overlays: []string{fmt.Sprintf(`
receivers:
  nixl_shm:
    initial_delay: 0s
    collection_interval: 100ms
    metrics: {nixl.events: {enabled: true}}
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
exporters:
  %s: {timeout: 500ms, retry_on_failure: {initial_interval: 50ms, max_interval: 300ms}}
`, o.exporter)},
		env: []string{
			"NIXL_TELEMETRY_DIR=" + rings, "STATE_DIRECTORY=" + t.TempDir(), "OTEL_EXPORTER_OTLP_ENDPOINT=" + to.URL(),
		},
	}.start(t)
	to.Await(t, func(totals map[string]ledger.Series) string {
		if len(totals) < 5 {
			return "not all agents were reported"
		}
		return ""
	})
	before, _ := c.Memory(t)
	down(t, to, long)
	during, peak := c.Memory(t)
	_, rejected := to.Requests()
	to.SetMode(backend.Accepts)

	want := stop(t, agents)
	to.Await(t, func(got map[string]ledger.Series) string {
		for path, series := range want {
			for name, n := range series {
				if got[path][name] != n {
					return fmt.Sprintf("%s: %s is %d, want %d", filepath.Base(path), name, got[path][name], n)
				}
			}
		}
		return ""
	})
	c.Stop(t, sigterm)
	for _, wrong := range to.Contradictions() {
		t.Error(wrong)
	}
	const mib = 1 << 20
	t.Logf("down for %v, %d requests rejected; memory %d MiB before, %d MiB at the end, at most %d MiB",
		long, rejected, before/mib, during/mib, peak/mib)
	if peak > before+memoryLimit {
		t.Errorf("memory grew from %d to %d MiB", before/mib, peak/mib)
	}
	if rejected == 0 {
		t.Error("the backend received no requests while it was down")
	}
}

// memoryLimit is the limit of the samples' memory_limiter, which limits queues in memory, plus a
// quarter for garbage that isn't collected yet.
const memoryLimit = 256 << 20 * 5 / 4

// down makes a backend fail in each mode.
func down(t *testing.T, to *backend.Backend, long time.Duration) {
	t.Helper()
	modes := []backend.Mode{backend.Stalls, backend.Throttles, backend.Fails, backend.HangsUp}
	step := long / time.Duration(len(modes)+1)
	to.Refuse()
	pass(t, step)
	for i, m := range modes {
		to.SetMode(m)
		if i == 0 {
			to.Listen(t)
		}
		pass(t, step)
	}
}
