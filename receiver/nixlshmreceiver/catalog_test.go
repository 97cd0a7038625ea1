// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// declared is the part of metadata.yaml that the catalog has, too.
type declared struct {
	ResourceAttributes map[string]declaredAttribute `mapstructure:"resource_attributes"`
	Attributes         map[string]declaredAttribute `mapstructure:"attributes"`
	Metrics            map[string]struct {
		Enabled     bool           `mapstructure:"enabled"`
		Description string         `mapstructure:"description"`
		Note        string         `mapstructure:"extended_documentation"`
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

type declaredAttribute struct {
	Description string   `mapstructure:"description"`
	Type        string   `mapstructure:"type"`
	Enabled     bool     `mapstructure:"enabled"`
	Enum        []string `mapstructure:"enum"`
	Need        string   `mapstructure:"requirement_level"`
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
		// Other keys, such as stability, are only for mdatagen.
		if err := section.Unmarshal(into, confmap.WithIgnoreUnused()); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// Histograms are in the catalog only, because mdatagen generates none.
func TestMetadataHasTheMetricsOfTheCatalog(t *testing.T) {
	got := make(map[string]semconv.Metric)
	for name, m := range readMetadata(t).Metrics {
		entry := semconv.Metric{
			Name: name, Unit: m.Unit, Description: m.Description, Note: m.Note, Attributes: m.Attributes, Derived: !m.Enabled,
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
	want := make(map[string]semconv.Metric)
	for _, m := range semconv.NIXL() {
		if m.Kind != semconv.Histogram {
			m.Conditional = nil
			want[m.Name] = m
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-semconv +metadata.yaml)\n%s", d)
	}
}

func TestMetadataHasTheAttributesOfTheCatalog(t *testing.T) {
	d := readMetadata(t)
	for _, m := range d.Telemetry.Metrics {
		for _, key := range m.Attributes {
			delete(d.Attributes, key)
		}
	}
	used := make(map[string]bool)
	for _, m := range semconv.NIXL() {
		for _, key := range m.Attributes {
			used[key] = true
		}
	}
	want := make(map[string]declaredAttribute)
	for _, a := range append(semconv.NIXLAttributes(), semconv.SharedAttributes()...) {
		if !used[a.Key] {
			continue
		}
		attribute := declaredAttribute{Description: a.Description, Type: a.Type, Need: "required"}
		if a.Key == semconv.Direction || a.Key == semconv.MemoryOperation { // the code writes the others as strings
			for _, v := range a.Values {
				attribute.Enum = append(attribute.Enum, v.Value)
			}
		}
		want[a.Key] = attribute
	}
	if d := cmp.Diff(want, d.Attributes); d != "" {
		t.Errorf("(-semconv +metadata.yaml)\n%s", d)
	}

	want = make(map[string]declaredAttribute)
	for _, a := range semconv.ResourceAttributes() {
		if a.Condition != "" {
			a.Description += " Present only " + a.Condition + "."
		}
		want[a.Key] = declaredAttribute{Description: a.Description, Type: a.Type, Enabled: !a.OptIn}
	}
	if d := cmp.Diff(want, d.ResourceAttributes); d != "" {
		t.Errorf("resource attributes (-semconv +metadata.yaml)\n%s", d)
	}
}

func TestReceiverEmitsExactlyTheCatalog(t *testing.T) {
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
		if of := rm.ScopeMetrics().At(0).SchemaUrl(); rm.SchemaUrl() != semconv.SchemaURL || of != semconv.SchemaURL {
			t.Errorf("schema URL is %q of the resource and %q of the scope", rm.SchemaUrl(), of)
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			entry := written(t, m)
			if before, ok := got[m.Name()]; ok && !cmp.Equal(before, entry) {
				t.Errorf("%s differs from agent to agent:\n%s", m.Name(), cmp.Diff(before, entry))
			}
			got[m.Name()] = entry
		}
	}
	want := make(map[string]semconv.Metric)
	for _, m := range semconv.NIXL() {
		m.Conditional, m.Note = nil, "" // neither shows in every point
		want[m.Name] = m
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-semconv +emitted)\n%s", d)
	}
}

// written describes a metric of a batch in the same way as the catalog.
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

// keys returns the keys of a point in their order.
func keys(attrs pcommon.Map) (list []string) {
	for k := range attrs.All() {
		list = append(list, k)
	}
	return list
}
