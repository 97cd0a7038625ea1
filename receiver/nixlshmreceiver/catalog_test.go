// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// declared is what metadata.yaml says, as far as the catalog says it too.
type declared struct {
	ResourceAttributes map[string]struct {
		Type    string `mapstructure:"type"`
		Enabled bool   `mapstructure:"enabled"`
	} `mapstructure:"resource_attributes"`
	Attributes map[string]struct {
		Type string   `mapstructure:"type"`
		Enum []string `mapstructure:"enum"`
		Need string   `mapstructure:"requirement_level"`
	} `mapstructure:"attributes"`
	Metrics map[string]struct {
		Enabled     bool           `mapstructure:"enabled"`
		Description string         `mapstructure:"description"`
		Unit        string         `mapstructure:"unit"`
		Sum         *declaredValue `mapstructure:"sum"`
		Gauge       *declaredValue `mapstructure:"gauge"`
		Attributes  []string       `mapstructure:"attributes"`
	} `mapstructure:"metrics"`
	Telemetry struct {
		Metrics map[string]struct {
			Attributes []string `mapstructure:"attributes"`
		} `mapstructure:"metrics"`
	} `mapstructure:"telemetry"`
}

type declaredValue struct {
	Type        string `mapstructure:"value_type"`
	Monotonic   bool   `mapstructure:"monotonic"`
	Temporality string `mapstructure:"aggregation_temporality"`
}

func readMetadata(t *testing.T) (d declared) {
	t.Helper()
	all, err := confmaptest.LoadConf("metadata.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for key, into := range map[string]any{
		"resource_attributes": &d.ResourceAttributes, "attributes": &d.Attributes, "metrics": &d.Metrics, "telemetry": &d.Telemetry,
	} {
		section, err := all.Sub(key)
		if err != nil {
			t.Fatal(err)
		}
		// What a metric has beyond the catalog, as its stability, is mdatagen's.
		if err := section.Unmarshal(into, confmap.WithIgnoreUnused()); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// catalog is semconv's metrics as the test compares them: without what is
// only documentation, and by name.
func catalog(keep func(semconv.Metric) bool) map[string]semconv.Metric {
	byName := make(map[string]semconv.Metric)
	for _, m := range semconv.NIXL() {
		if keep(m) {
			m.Conditional = nil
			byName[m.Name] = m
		}
	}
	return byName
}

// metadata.yaml and the catalog say the same of every metric. Histograms are
// in the catalog only, as mdatagen can't generate them.
func TestMetadataIsTheCatalog(t *testing.T) {
	got := make(map[string]semconv.Metric)
	for name, m := range readMetadata(t).Metrics {
		entry := semconv.Metric{
			Name: name, Unit: m.Unit, Description: m.Description, Attributes: m.Attributes, Derived: !m.Enabled,
		}
		value := m.Gauge
		switch {
		case m.Gauge != nil && m.Sum == nil:
			entry.Kind = semconv.Gauge
		case m.Sum != nil && m.Gauge == nil:
			value, entry.Kind = m.Sum, semconv.UpDownCounter
			if m.Sum.Monotonic {
				entry.Kind = semconv.Counter
			}
			if m.Sum.Temporality != "cumulative" {
				t.Errorf("%s is %s", name, m.Sum.Temporality)
			}
		default:
			t.Fatalf("%s is neither a sum nor a gauge", name)
		}
		entry.Number = map[string]semconv.Number{"int": semconv.Int64, "double": semconv.Float64}[value.Type]
		got[name] = entry
	}
	want := catalog(func(m semconv.Metric) bool { return m.Kind != semconv.Histogram })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-semconv +metadata.yaml)\n%s", d)
	}
}

func TestMetadataHasTheCatalogsAttributes(t *testing.T) {
	d := readMetadata(t)
	enums := map[string][]string{
		semconv.Direction:       {semconv.Transmit, semconv.Receive},
		semconv.MemoryOperation: {semconv.Register, semconv.Deregister},
	}
	want := make(map[string]bool)
	for _, m := range semconv.NIXL() {
		if m.Kind == semconv.Histogram {
			continue
		}
		for _, key := range m.Attributes {
			want[key] = true
		}
	}
	for _, m := range d.Telemetry.Metrics {
		for _, key := range m.Attributes {
			delete(d.Attributes, key)
		}
	}
	for key, a := range d.Attributes {
		if !want[key] {
			t.Errorf("attribute %s is in metadata.yaml only", key)
		}
		if !slices.Equal(a.Enum, enums[key]) || a.Type != "string" || a.Need != "required" {
			t.Errorf("attribute %s is %+v", key, a)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("attributes %v are in semconv only", slices.Collect(maps.Keys(want)))
	}

	resource := make(map[string]bool)
	for key, a := range d.ResourceAttributes {
		resource[key] = a.Enabled
	}
	wantResource := map[string]bool{
		semconv.ServiceName: true, semconv.ServiceInstanceID: true, semconv.HostName: true, semconv.AgentName: true,
		semconv.TelemetryLayout: false, semconv.TelemetryPath: false, semconv.LocalRank: true,
		semconv.K8SPodUID: true, semconv.ContainerID: true, semconv.ProcessPID: true, semconv.ProcessExecutableName: true,
	}
	if d := cmp.Diff(wantResource, resource); d != "" {
		t.Errorf("resource attributes, and whether they are on (-semconv +metadata.yaml)\n%s", d)
	}
}

// What the receiver writes is the catalog, all of it and nothing else.
func TestReceiverWritesTheCatalog(t *testing.T) {
	dir, _ := copyRings(t)
	h := newHarness(t, dir, func(c *Config) {
		c.Include, c.MaxEventNames = []string{"**"}, 3
		c.Metrics.NixlAgentUp.Enabled = true
	}).start()
	var batch pmetric.Metrics
	eventually(t, "answer from the kernel", func() bool {
		batch = h.next()
		for _, a := range read(t, batch) {
			if !a.metrics()[semconv.AgentUp.Name] {
				return false
			}
		}
		return true
	})
	got := make(map[string]semconv.Metric)
	for _, rm := range batch.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			entry := written(t, m)
			if before, ok := got[m.Name()]; ok && !cmp.Equal(before, entry) {
				t.Errorf("%s differs from agent to agent:\n%s", m.Name(), cmp.Diff(before, entry))
			}
			got[m.Name()] = entry
		}
	}
	want := catalog(func(semconv.Metric) bool { return true })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-semconv +written)\n%s", d)
	}
}

// written is a metric of a batch in the terms of the catalog.
func written(t *testing.T, m pmetric.Metric) semconv.Metric {
	t.Helper()
	entry := semconv.Metric{Name: m.Name(), Unit: m.Unit(), Description: m.Description()}
	var numbers pmetric.NumberDataPointSlice
	cumulative := pmetric.AggregationTemporalityCumulative
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		entry.Kind, entry.Number = semconv.Histogram, semconv.Float64
		if m.Histogram().AggregationTemporality() != cumulative {
			t.Errorf("%s is not cumulative", m.Name())
		}
		for _, dp := range m.Histogram().DataPoints().All() {
			entry.Attributes = keys(dp.Attributes())
		}
		return entry
	case pmetric.MetricTypeGauge:
		entry.Kind, numbers = semconv.Gauge, m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		entry.Kind, numbers = semconv.UpDownCounter, m.Sum().DataPoints()
		if m.Sum().IsMonotonic() {
			entry.Kind = semconv.Counter
		}
		if m.Sum().AggregationTemporality() != cumulative {
			t.Errorf("%s is not cumulative", m.Name())
		}
	default:
		t.Fatalf("%s is a %v", m.Name(), m.Type())
	}
	for _, dp := range numbers.All() {
		if more, ok := dp.Attributes().Get(semconv.MetricOverflow); ok && more.Bool() && dp.Attributes().Len() == 1 {
			continue
		}
		entry.Attributes = keys(dp.Attributes())
		entry.Number = semconv.Int64
		if dp.ValueType() == pmetric.NumberDataPointValueTypeDouble {
			entry.Number = semconv.Float64
		}
	}
	return entry
}

// keys are the keys of a point in the order in which it has them.
func keys(attrs pcommon.Map) (list []string) {
	for k := range attrs.All() {
		list = append(list, k)
	}
	return list
}
