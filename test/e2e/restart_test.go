// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// An attribute of the resource changes at each restart, so each run of an agent is a series of its own
// at a backend. Together, they count each event once: those that agents write while no Collector runs or
// right before it stops, those before the Collector was killed, if it has storage, and without storage
// also those of earlier Collectors, with other start times.
func TestSeriesOfAllAttributesAddUpToTheTotals(t *testing.T) {
	t.Parallel()
	const cumulative, delta = pmetric.AggregationTemporalityCumulative, pmetric.AggregationTemporalityDelta
	for sample, c := range map[string]struct {
		exporter    string
		end         func(*otelcol.Collector, testing.TB)
		temporality pmetric.AggregationTemporality
	}{
		"otlp-grpc.yaml": {"otlp_grpc", func(c *otelcol.Collector, tb testing.TB) { c.Kill(tb) }, cumulative},
		"otlp-http.yaml": {"otlp_http", stop, cumulative},
		"delta.yaml":     {"otlp_http", stop, delta}, // a processor that is killed forgets which deltas it has sent
	} {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			dir, backend := t.TempDir(), otlpfile.NewSink(t)
			run := otelcol.Setup{
				Sample: sample,
				Overlays: []string{
					otelcol.Every(100 * time.Millisecond), otelcol.ExportTo(c.exporter), soon(c.exporter),
					"receivers: {nixl_shm: {resource_attributes: {nixl.telemetry.layout: {enabled: true}}}}",
				},
				Env: []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL(), "STATE_DIRECTORY=" + t.TempDir()},
			}
			collector := run.Start(t)
			a := newAgent(t, dir, "a")
			arrive := func() {
				t.Helper()
				must.Eventually(t, func() string { return cmp.Diff(sums(a.want()), sums(backend.Totals(t)[a.Path()])) })
			}
			drained := func() {
				t.Helper()
				must.EventuallyTrue(t, "drained ring", func() bool { return ringtest.ReadHeader(t, a.Path()).Drained() })
			}
			for _, step := range []struct {
				layout ringbuf.Layout
				end    func()
			}{
				{ringbuf.V3, drained}, // the agent restarts while the Collector runs
				{ringbuf.V4, func() { collector.Stop(t, syscall.SIGINT) }},
				{ringbuf.V1, func() { drained(); c.end(collector, t) }},
			} {
				a.transfer(t, 10)
				arrive()
				a.transfer(t, 5) // exported before the restart, or after it
				step.end()
				a.restart(t, step.layout)
				a.transfer(t, 3)
				if step.layout != ringbuf.V3 {
					collector = run.Start(t)
				}
				arrive()
			}
			stop(collector, t)
			arrive()
			if d := cmp.Diff(map[pmetric.AggregationTemporality]bool{c.temporality: true}, otlpfile.Temporalities(backend.Collections())); d != "" {
				t.Errorf("temporalities (-want +got):\n%s", d)
			}
		})
	}
}

func stop(c *otelcol.Collector, tb testing.TB) { c.Stop(tb, syscall.SIGTERM) }

// restart writes the ring as another process of the agent does.
func (a *agent) restart(t *testing.T, layout ringbuf.Layout) {
	t.Helper()
	w, err := ringbuf.Create(a.Path(), layout, a.Capacity())
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	a.Writer = w
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

// soon shortens the retry intervals of an exporter, but not the total time.
func soon(exporter string) string {
	return fmt.Sprintf("exporters: {%s: {retry_on_failure: {initial_interval: 100ms, max_interval: 300ms}}}\n", exporter)
}
