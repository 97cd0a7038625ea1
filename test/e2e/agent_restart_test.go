// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// An attribute of the resource changes at each restart, so each run of an agent is a series of its own
// at a backend. Together, they count each event once, also after the Collector was killed or stopped.
func TestSeriesOfAllAttributesAddUpToTheTotals(t *testing.T) {
	t.Parallel()
	for name, sample := range map[string]string{"cumulative": "otlp-grpc.yaml", "delta": "delta.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, state := t.TempDir(), t.TempDir()
			exporter, protocol := "otlp_grpc", "grpc"
			if name == "delta" {
				exporter, protocol = "otlp_http", "http"
			}
			backend, address := sink(t, protocol, anyPort)
			run := setup{
				sample: sample,
				overlays: []string{
					every(100 * time.Millisecond), exportTo(exporter), soon(exporter),
					"receivers: {nixl_shm: {resource_attributes: {nixl.telemetry.layout: {enabled: true}}}}",
				},
				env: []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "STATE_DIRECTORY=" + state},
			}
			c := run.start(t)
			a := newAgent(t, dir, "a")
			for i, layout := range []ringbuf.Layout{ringbuf.V3, ringbuf.V4, ringbuf.V1} {
				a.transfer(t, 10+i)
				backend.awaitSums(t, a)
				a.transfer(t, 5) // exported before the restart, or after it
				a.drained(t)
				switch {
				case i == 0: // the agent restarts while the Collector runs
				case i == 1 || name == "delta": // a processor that is killed forgets which deltas it has sent
					c.Stop(t, syscall.SIGTERM)
				default:
					c.Kill(t)
				}
				a.restart(t, layout)
				a.transfer(t, 3)
				if i > 0 {
					c = run.start(t)
				}
				backend.awaitSums(t, a)
			}
			c.Stop(t, syscall.SIGTERM)
			backend.Stop(t, syscall.SIGTERM)
			if names := otlpfile.Cumulative(backend.collections(t)); name == "delta" && len(names) > 0 {
				t.Errorf("cumulative metrics: %v", names)
			}
			if got, want := sums(backend.totals(t)[a.Path()]), sums(a.want()); !maps.Equal(got, want) {
				t.Errorf("sums %v, want %v", got, want)
			}
		})
	}
}

// restart writes the ring as another process of the agent does.
func (a *agent) restart(t *testing.T, layout ringbuf.Layout) {
	t.Helper()
	w, err := ringbuf.Create(a.Path(), layout, a.Capacity())
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	a.Writer = w
}

// drained waits until all events are committed.
func (a *agent) drained(t *testing.T) {
	t.Helper()
	must.Eventually(t, func() string {
		if h := ringtest.ReadHeader(t, a.Path()); !h.Drained() {
			return fmt.Sprintf("the ring is read up to %d of %d", h.ReadPos, h.WritePos)
		}
		return ""
	})
}

// sums returns what a backend adds up, and no layout lacks.
func sums(s otlpfile.Series) map[string]int64 {
	all := make(map[string]int64)
	for name, v := range s {
		if strings.HasPrefix(name, "nixl.transfer.") && !strings.Contains(name, "last") && !strings.Contains(name, "throughput") {
			all[name] = v.Int + int64(v.Count)
		}
	}
	return all
}

func (c *collector) awaitSums(t *testing.T, a *agent) {
	t.Helper()
	c.await(t, func(got otlpfile.Totals) string {
		if got, want := sums(got[a.Path()]), sums(a.want()); !maps.Equal(got, want) {
			return fmt.Sprintf("sums %v, want %v", got, want)
		}
		return ""
	})
}
