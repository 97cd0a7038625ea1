// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// Events that agents write while no Collector runs wait in the rings. Without storage, counters start from
// zero with a new start time, and the counts of all runs add up.
func TestCollectorRestartLosesNothing(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "metrics.json")
	a, b := newAgent(t, dir, "a"), newAgent(t, dir, "b")
	run := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(100 * time.Millisecond), otelcol.ExportTo("file")},
		Env:      []string{rings(dir), "PORT=0"},
		File:     file,
	}
	const runs = 2
	for n := range runs {
		a.transfer(t, 10+n) // before
		c := run.Start(t)
		a.transfer(t, 20+n) // while it runs
		b.transfer(t, 1+n)
		c.AwaitTotals(t, want(a, b))
		a.transfer(t, 30+n) // right before it stops
		c.Stop(t, syscall.SIGTERM)
		c.NoComplaints(t)
		mustEqual(t, want(a, b), c.Totals(t))
	}
	list, err := otlpfile.NewFile(file).Collections()
	must.OK(t, err)
	starts, instances := make(map[string]int), make(map[string]map[string]bool)
	for path, list := range otlpfile.Starts(list) {
		starts[path] = len(list)
	}
	for _, m := range list {
		for _, rm := range m.ResourceMetrics().All() {
			path := otlpfile.Agent(rm.Resource())
			if instances[path] == nil {
				instances[path] = make(map[string]bool)
			}
			id, _ := rm.Resource().Attributes().Get("service.instance.id")
			instances[path][id.Str()] = true
		}
	}
	if d := cmp.Diff(map[string]int{a.Path(): runs, b.Path(): runs}, starts); d != "" {
		t.Errorf("start times (-want +got):\n%s", d)
	}
	for path, ids := range instances {
		if len(ids) != 1 {
			t.Errorf("%s: instances %v, want one", path, ids)
		}
	}
}

// An attribute of the resource changes at each restart, so each run of an agent is a series of its own
// at a backend. Together, they count each event once, even after the Collector was killed or stopped.
func TestSeriesOfAllAttributesAddUpToTheTotals(t *testing.T) {
	t.Parallel()
	for sample, exporter := range map[string]string{"otlp-grpc.yaml": "otlp_grpc", "delta.yaml": "otlp_http"} {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			dir, state, backend, delta := t.TempDir(), t.TempDir(), otlpfile.NewSink(t), sample == "delta.yaml"
			run := otelcol.Setup{
				Sample: sample,
				Overlays: []string{
					otelcol.Every(100 * time.Millisecond), otelcol.ExportTo(exporter), soon(exporter),
					"receivers: {nixl_shm: {resource_attributes: {nixl.telemetry.layout: {enabled: true}}}}",
				},
				Env: []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL(), "STATE_DIRECTORY=" + state},
			}
			c := run.Start(t)
			a := newAgent(t, dir, "a")
			arrive := func() {
				t.Helper()
				must.Eventually(t, func() string { return cmp.Diff(sums(a.want()), sums(backend.Totals(t)[a.Path()])) })
			}
			for i, layout := range []ringbuf.Layout{ringbuf.V3, ringbuf.V4, ringbuf.V1} {
				a.transfer(t, 10+i)
				arrive()
				a.transfer(t, 5) // exported before the restart, or after it
				must.EventuallyTrue(t, "drained ring", func() bool { return ringtest.ReadHeader(t, a.Path()).Drained() })
				switch {
				case i == 0: // the agent restarts while the Collector runs
				case i == 1 || delta: // a processor that is killed forgets which deltas it has sent
					c.Stop(t, syscall.SIGTERM)
				default:
					c.Kill(t)
				}
				a.restart(t, layout)
				a.transfer(t, 3)
				if i > 0 {
					c = run.Start(t)
				}
				arrive()
			}
			c.Stop(t, syscall.SIGTERM)
			arrive()
			if names := otlpfile.Cumulative(backend.Collections()); delta && len(names) > 0 {
				t.Errorf("cumulative metrics: %v", names)
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
