// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestEventsBeyondTheLimitOfNamesCountAsOverflow(t *testing.T) {
	const custom, overflow = "{nixl.event.category=custom,nixl.event.name=a}", "{otel.metric.overflow=bool true}"
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V1, 64)
	for i, name := range []string{"a", "b", "c"} {
		push(t, w, ringbuf.NewNamedEvent(ringbuf.CategoryCustom, name, uint64(10*(i+1))))
	}
	h := newHarness(t, dir, func(c *Config) { c.Metrics.NixlEventLastValue.Enabled = false })
	h.on.adapt = func(c *engine.Config) { c.Tally.MaxNames = 1 }
	got := one(t, h.start().next()).points
	maps.DeleteFunc(got, func(point string, _ any) bool { return !strings.HasPrefix(point, "nixl.event") })
	if d := cmp.Diff(oracle.Points{
		"nixl.events" + custom: int64(1), "nixl.event.value" + custom: int64(10),
		"nixl.events" + overflow: int64(2), "nixl.event.value" + overflow: int64(50),
	}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
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
	h := newHarness(t, dir, func(c *Config) { must.OK(t, filtered.Unmarshal(c)) }).start()
	if got := slices.Collect(maps.Keys(read(t, h.next()))); !slices.Equal(got, []string{"prefill-0"}) {
		t.Errorf("agents %v", got)
	}
}

func TestNothingIsExportedIfEveryMetricIsDisabled(t *testing.T) {
	h := agentHarness(t, often, func(c *Config) {
		for _, metric := range reflect.ValueOf(&c.Metrics).Elem().Fields() {
			metric.FieldByName("Enabled").SetBool(false)
		}
		none := tally.HistogramConfig{Kind: tally.NoHistogram}
		c.Histograms = tally.Config{Duration: none, Size: none, Throughput: none}
	})
	h.push(write(1, 1, 1)...)
	h.start()
	h.drained()
	if h.shutdown().ResourceMetrics().Len() > 0 {
		t.Error("a batch without points was exported")
	}
}

// docs/cost.md has these figures.
func TestDefaultMetricsHaveAtMost40PointsPerAgent(t *testing.T) {
	const agents = 8
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	for a := range agents {
		w := ring(t, dir, fmt.Sprintf("decode-%d", a), ringbuf.V4, 4096)
		for kind := ringbuf.TypeMemoryRegistered; kind < ringbuf.TypeEventsDropped; kind++ {
			push(t, w, ringbuf.NewEvent(kind, 4096))
		}
		for range 900 {
			one := write(1<<(10+random.Uint64N(20))+random.Uint64N(1<<20), 30+random.Uint64N(1<<random.Uint64N(20)), 5+random.Uint64N(50))
			if random.IntN(2) > 0 {
				one[2].Type, one[3].Type = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
			}
			push(t, w, one...)
		}
	}
	m := newHarness(t, dir, func(c *Config) { c.Metrics = metadata.DefaultMetricsConfig() }).start().next()
	if n := m.DataPointCount(); n > 40*agents || m.ResourceMetrics().Len() != agents {
		t.Errorf("%d points of %d agents, want 40 or fewer of each of %d", n, m.ResourceMetrics().Len(), agents)
	}
	b, err := new(pmetric.ProtoMarshaler).MarshalMetrics(m)
	must.OK(t, err)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write(b); err != nil {
		t.Fatal(err)
	}
	must.OK(t, zip.Close())
	t.Logf("%d points and %d bytes (%d with gzip) per agent", m.DataPointCount()/agents, len(b)/agents, zipped.Len()/agents)
}

func TestAgentUpIsReportedIfTheKernelReportsIt(t *testing.T) {
	shape, err := tally.NewShape(tally.Config{})
	must.OK(t, err)
	cfg := createDefaultConfig()
	b := newBuilder(cfg, metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, receivertest.NewNopSettings(metadata.Type)))
	for up, want := range map[engine.Up]any{engine.UpYes: int64(1), engine.UpNo: int64(0), engine.UpUnknown: nil} {
		agent := engine.Snapshot{Layout: ringbuf.V4, Start: time.Now(), Up: up, Totals: tally.NewAgent(shape).Snapshot()}
		if got := one(t, b.build(time.Now(), []engine.Snapshot{agent})).points["nixl.agent.up"]; got != want {
			t.Errorf("nixl.agent.up is %v, want %v", got, want)
		}
	}
}
