// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle/ringoracle"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// The totals are checked in the Collector's own file, and at a backend. Oracle and Collector may see the
// torn groups of a ring that is read in parts differently.
func TestRingsOfAllLayoutsAreCounted(t *testing.T) {
	t.Parallel()
	for sample, exporter := range map[string]string{"otlp-grpc.yaml": "otlp_grpc", "otlp-http.yaml": "otlp_http"} {
		t.Run(exporter, func(t *testing.T) {
			t.Parallel()
			dir, backend := t.TempDir(), otlpfile.NewSink(t)
			want := allRings(t, dir)
			c := otelcol.Setup{
				Sample:   sample,
				Overlays: []string{otelcol.Every(200 * time.Millisecond), otelcol.ExportTo(exporter, "file")},
				Env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL()},
			}.Start(t)
			c.AwaitTotals(t, want, tornGroups)
			backend.AwaitTotals(t, want, tornGroups)
			c.Stop(t, syscall.SIGTERM)
			mustEqual(t, c.Totals(t), backend.Totals(t))
			mustEqual(t, want, backend.Totals(t), tornGroups)
		})
	}
}

const tornGroups = "nixl.telemetry.ring.torn_groups"

// allRings fills a directory with all rings of testdata/rings, and with rings of the other layouts. It
// returns their totals.
func allRings(t *testing.T, dir string) otlpfile.Totals {
	t.Helper()
	want := make(otlpfile.Totals)
	layouts := make(map[int32]int)
	for _, c := range ringtest.Cases(t) {
		path := ringtest.CopyTo(t, c, filepath.Join(dir, strings.ReplaceAll(c.Name, "/", "_")))
		if !c.Reported() {
			continue // the Collector ignores it, or logs it and continues
		}
		_, points := ringoracle.Of(&c)
		want[path] = otlpfile.Want(points)
		layouts[c.Version]++
	}
	if len(layouts) != 3 {
		t.Fatalf("real rings are of the versions %v, want 3 different ones", layouts)
	}
	for _, l := range []ringbuf.Layout{ringbuf.V2, ringbuf.V3} {
		path := filepath.Join(dir, l.String())
		want[path] = writeRing(t, path, l)
	}
	return want
}

// writeRing creates a ring with an event of each type and with extreme values, and returns its series.
func writeRing(t *testing.T, path string, l ringbuf.Layout) otlpfile.Series {
	t.Helper()
	const capacity = 64
	w, err := ringbuf.Create(path, l, capacity)
	must.OK(t, err)
	defer w.Close()
	var events []ringbuf.Event
	for k := range ringbuf.TypeEventsDropped {
		events = append(events, ringbuf.NewEvent(k, 1000+uint64(k)))
	}
	for _, v := range []uint64{0, 1, 1<<53 + 1, math.MaxInt64, 1 << 63, math.MaxUint64} {
		events = append(events, ringbuf.NewEvent(ringbuf.TypeRxBytes, v))
	}
	if n, err := w.PushBatch(events); err != nil || n != len(events) {
		t.Fatalf("pushed %d of %d events: %v", n, len(events), err)
	}
	for i, e := range events {
		if l.Named() {
			events[i] = ringbuf.NewNamedEvent(e.Category, e.Type.LegacyName(), e.Value)
		}
	}
	return otlpfile.WantEvents(l, events, capacity)
}
