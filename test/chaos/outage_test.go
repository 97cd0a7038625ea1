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

// A backend is down in every way there is, while agents write and the samples'
// queues fill. Memory stays bounded and, once it answers again, totals are
// whole.
//
// Time is compressed: the samples collect each 10 s, here it is a hundred times
// as often, and the waits between the exporters' attempts are as much shorter.
// So an outage of 10 s is one of a quarter of an hour.
func TestOutage(t *testing.T) {
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
	_, turned := to.Requests()
	to.Be(backend.Takes)

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
	t.Logf("down for %v, %d requests turned down; memory %d MiB before, %d MiB at the end, %d MiB at most",
		long, turned, before/mib, during/mib, peak/mib)
	if peak > before+memoryLimit {
		t.Errorf("memory went from %d to %d MiB", before/mib, peak/mib)
	}
	if turned == 0 {
		t.Error("the backend was never asked while it was down")
	}
}

// memoryLimit is that of the samples' memory_limiter, which is what bounds a
// queue in memory, and a quarter for what isn't collected yet.
const memoryLimit = 256 << 20 * 5 / 4

// down takes a backend through its moods.
func down(t *testing.T, to *backend.Backend, long time.Duration) {
	t.Helper()
	moods := []backend.Mood{backend.Stalls, backend.Throttles, backend.Fails, backend.Hangs}
	step := long / time.Duration(len(moods)+1)
	to.Refuse()
	pass(t, step)
	for i, m := range moods {
		to.Be(m)
		if i == 0 {
			to.Listen(t)
		}
		pass(t, step)
	}
}
