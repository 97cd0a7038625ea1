// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestReceiverEmitsExactlyTheCatalog(t *testing.T) {
	dir, cases := copyRings(t)
	h := newHarness(t, dir, func(c *Config) {
		c.Include = []string{"**"}
		c.Metrics.NixlAgentUp.Enabled = true
	}).limitNames(3).startWith(reportable(cases))
	var batch pmetric.Metrics
	must.EventuallyTrue(t, "answer from the kernel", func() bool {
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
		m.Conditional, m.Note, m.OptIn = nil, "", false // these don't show in every point
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
			entry.Attributes, entry.Bounds = keys(dp.Attributes()), dp.ExplicitBounds().AsRaw()
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
