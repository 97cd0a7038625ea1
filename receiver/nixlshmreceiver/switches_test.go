// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// fullCatalog creates a ring with an event of every kind.
func fullCatalog(t *testing.T, dir string) {
	t.Helper()
	w := ring(t, dir, "agent", ringbuf.V1, 64)
	for kind := range ringbuf.TypeEventsDropped {
		push(t, w, ringbuf.NewEvent(kind, 1))
	}
	push(t, w, ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "progress", 1))
}

func TestEveryMetricCanBeDisabledSeparately(t *testing.T) {
	dir := t.TempDir()
	fullCatalog(t, dir)
	observe := func(c *Config) { c.Mode = ringbuf.Observe }
	all := one(t, newHarness(t, dir, observe).start().shutdown()).metrics()
	for _, m := range semconv.NIXL() {
		name := m.Name
		if m.Kind == semconv.Histogram {
			continue // histograms::…::kind disables it
		}
		off := confmap.NewFromStringMap(map[string]any{"metrics": map[string]any{name: map[string]any{"enabled": false}}})
		h := newHarness(t, dir, observe, func(c *Config) {
			must.OK(t, off.Unmarshal(c))
		})
		want := maps.Clone(all)
		conditional := name == "nixl.telemetry.ring.torn_groups" || name == "nixl.agent.up" // depends on the layout, or on the kernel
		if !all[name] && !conditional {
			t.Errorf("%s is enabled, but not reported", name)
		}
		delete(want, name)
		if d := cmp.Diff(want, one(t, h.start().shutdown()).metrics()); d != "" {
			t.Errorf("%s disabled (-want +got)\n%s", name, d)
		}
	}
}

func TestFiltersRemoveWholeAgents(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"decode-0", "decode-1", "prefill-0"} {
		push(t, ring(t, dir, name, ringbuf.V4, 16), write(1, 1, 1)...)
	}
	filtered := confmap.NewFromStringMap(map[string]any{
		"resource_attributes": map[string]any{"nixl.agent.name": map[string]any{
			"enabled": true, "metrics_exclude": []any{map[string]any{"regexp": "decode-.*"}},
		}},
	})
	h := newHarness(t, dir, func(c *Config) {
		must.OK(t, filtered.Unmarshal(c))
	}).start()
	if got := slices.Collect(maps.Keys(read(t, h.next()))); !slices.Equal(got, []string{"prefill-0"}) {
		t.Errorf("agents %v", got)
	}
}

func TestNothingIsExportedIfEveryMetricIsDisabled(t *testing.T) {
	dir := t.TempDir()
	fullCatalog(t, dir)
	h := newHarness(t, dir, often, func(c *Config) {
		metrics := reflect.ValueOf(&c.Metrics).Elem()
		for _, metric := range metrics.Fields() {
			metric.FieldByName("Enabled").SetBool(false)
		}
		c.Histograms.Duration.Kind, c.Histograms.Size.Kind = tally.NoHistogram, tally.NoHistogram
	}).start()
	drained(t, filepath.Join(dir, "agent"))
	if h.shutdown().ResourceMetrics().Len() > 0 {
		t.Error("a batch without points was exported")
	}
}
