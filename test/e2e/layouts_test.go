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
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// The totals are checked in the Collector's own file, and in a second Collector that receives them over
// OTLP.
func TestRingsOfAllLayoutsAreCounted(t *testing.T) {
	t.Parallel()
	for _, way := range []struct{ protocol, sample, exporter string }{
		{"grpc", "otlp-grpc.yaml", "otlp_grpc"},
		{"http", "otlp-http.yaml", "otlp_http"},
	} {
		t.Run(way.protocol, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			want := allRings(t, dir)
			backend, address := sink(t, way.protocol, anyPort)
			c := setup{
				sample:   way.sample,
				overlays: []string{every(200 * time.Millisecond), exportTo(way.exporter, "file")},
				env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address},
			}.start(t)
			c.awaitTotals(t, want, tornGroups)
			backend.awaitTotals(t, want, tornGroups)
			checkAgents(t, c.totals(t))

			c.Stop(t, syscall.SIGTERM)
			backend.Stop(t, syscall.SIGTERM)
			mustEqual(t, c.totals(t), backend.totals(t))
			mustEqual(t, want, backend.totals(t), tornGroups)
		})
	}
}

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
		want[path] = seriesOf(points)
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
	return wantEvents(l, events, capacity)
}

// checkAgents checks that rings of real agents have no torn groups.
func checkAgents(t *testing.T, totals otlpfile.Totals) {
	t.Helper()
	checked := 0
	for path, series := range totals {
		if torn, ok := series[tornGroups]; ok && strings.Contains(path, "real-agent_") {
			checked++
			if torn.Int != 0 {
				t.Errorf("%s: %d torn groups, want 0", path, torn.Int)
			}
		}
	}
	if checked == 0 {
		t.Error("no ring of a real agent of layout V4 was checked")
	}
}
