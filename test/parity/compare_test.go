// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// metric holds all OTLP fields of a metric except times.
type metric struct {
	Scope, ScopeVersion     string
	SchemaURL               string
	Name, Description, Unit string
	Kind                    pmetric.MetricType
	Monotonic               bool
	Temporality             pmetric.AggregationTemporality
	Points                  []point
}

type point struct {
	Attributes string // sorted, including the agent's name
	Int        int64
	Double     float64
	Type       pmetric.NumberDataPointValueType

	Count, ZeroCount        uint64
	Sum, Min, Max           float64
	HasSum, HasMin, HasMax  bool
	Bounds                  []float64
	Buckets                 []uint64
	Scale, Offset           int32
	Exemplars               int
	Flags                   pmetric.DataPointFlags
	HasStart, StartsInOrder bool // has a start time; the start time isn't after the time
}

// normalize returns the metrics of a batch in a fixed order, without the resource
// and without metrics whose names have one of the omitted prefixes. It always
// omits nixl.agent.up: an agent that reports itself doesn't export it, and for a
// ring the value depends on the time of the check.
func normalize(t *testing.T, batch pmetric.Metrics, omit ...string) []metric {
	t.Helper()
	omit = append(omit, semconv.AgentUp.Name)
	var list []metric
	for _, rm := range batch.ResourceMetrics().All() {
		name, ok := rm.Resource().Attributes().Get(semconv.AgentName)
		if !ok {
			t.Error("a resource without the agent's name")
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if !slices.ContainsFunc(omit, func(p string) bool { return strings.HasPrefix(m.Name(), p) }) {
					one := normalizeMetric(t, m, name.Str())
					one.Scope, one.ScopeVersion, one.SchemaURL = sm.Scope().Name(), sm.Scope().Version(), sm.SchemaUrl()
					list = append(list, one)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b metric) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func normalizeMetric(t *testing.T, m pmetric.Metric, agent string) metric {
	t.Helper()
	out := metric{Name: m.Name(), Description: m.Description(), Unit: m.Unit(), Kind: m.Type()}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		out.Monotonic, out.Temporality = m.Sum().IsMonotonic(), m.Sum().AggregationTemporality()
		out.Points = numbers(m.Sum().DataPoints(), agent)
	case pmetric.MetricTypeGauge:
		out.Points = numbers(m.Gauge().DataPoints(), agent)
	case pmetric.MetricTypeHistogram:
		out.Temporality = m.Histogram().AggregationTemporality()
		for _, dp := range m.Histogram().DataPoints().All() {
			out.Points = append(out.Points, histogram(dp, agent))
		}
	case pmetric.MetricTypeExponentialHistogram:
		out.Temporality = m.ExponentialHistogram().AggregationTemporality()
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			out.Points = append(out.Points, exponential(dp, agent))
		}
	default:
		t.Errorf("%s is a %v", m.Name(), m.Type())
	}
	slices.SortFunc(out.Points, func(a, b point) int { return cmp.Compare(a.Attributes, b.Attributes) })
	return out
}

func numbers(list pmetric.NumberDataPointSlice, agent string) (out []point) {
	for _, dp := range list.All() {
		p := point{
			Attributes: attributes(dp.Attributes(), agent),
			Type:       dp.ValueType(),
			Exemplars:  dp.Exemplars().Len(), Flags: dp.Flags(),
		}
		p.times(dp.StartTimestamp(), dp.Timestamp())
		switch p.Type {
		case pmetric.NumberDataPointValueTypeInt:
			p.Int = dp.IntValue()
		case pmetric.NumberDataPointValueTypeDouble:
			p.Double = dp.DoubleValue()
		case pmetric.NumberDataPointValueTypeEmpty:
		}
		out = append(out, p)
	}
	return out
}

func histogram(dp pmetric.HistogramDataPoint, agent string) point {
	p := point{
		Attributes: attributes(dp.Attributes(), agent),
		Count:      dp.Count(), Sum: dp.Sum(), Min: dp.Min(), Max: dp.Max(),
		HasSum: dp.HasSum(), HasMin: dp.HasMin(), HasMax: dp.HasMax(),
		Bounds: dp.ExplicitBounds().AsRaw(), Buckets: dp.BucketCounts().AsRaw(),
		Exemplars: dp.Exemplars().Len(), Flags: dp.Flags(),
	}
	p.times(dp.StartTimestamp(), dp.Timestamp())
	return p
}

func exponential(dp pmetric.ExponentialHistogramDataPoint, agent string) point {
	p := point{
		Attributes: attributes(dp.Attributes(), agent),
		Count:      dp.Count(), Sum: dp.Sum(), Min: dp.Min(), Max: dp.Max(), ZeroCount: dp.ZeroCount(),
		HasSum: dp.HasSum(), HasMin: dp.HasMin(), HasMax: dp.HasMax(),
		Buckets: dp.Positive().BucketCounts().AsRaw(), Scale: dp.Scale(), Offset: dp.Positive().Offset(),
		Exemplars: dp.Exemplars().Len(), Flags: dp.Flags(),
	}
	p.times(dp.StartTimestamp(), dp.Timestamp())
	return p
}

func (p *point) times(start, at pcommon.Timestamp) {
	p.HasStart, p.StartsInOrder = start != 0, start <= at
}

// attributes returns the attributes of a point. It adds the agent's name unless
// the point has it.
func attributes(m pcommon.Map, agent string) string {
	all := map[string]string{semconv.AgentName: agent}
	for k, v := range m.All() {
		all[k] = fmt.Sprintf("%v %s", v.Type(), v.AsString())
		if k == semconv.AgentName {
			all[k] = v.Str()
		}
	}
	keys := make([]string, 0, len(all))
	for k, v := range all {
		keys = append(keys, k+"="+v)
	}
	slices.Sort(keys)
	return strings.Join(keys, ",")
}

// roundedSums ignores the rounding errors of sums: the receiver adds integers and divides
// once, and the SDK adds floating-point numbers.
var roundedSums = gocmp.FilterPath(func(p gocmp.Path) bool { return p.Last().String() == ".Sum" }, cmpopts.EquateApprox(1e-9, 0))

// equal fails the test if two batches differ.
func equal(t *testing.T, want, got []metric) {
	t.Helper()
	if len(want) == 0 {
		t.Error("nothing was exported")
	}
	if d := gocmp.Diff(want, got, roundedSums); d != "" {
		t.Errorf("metrics differ (-receiver +bridge):\n%s", d)
	}
}
