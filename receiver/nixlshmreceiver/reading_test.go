// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
)

// agents is a batch in a form that go-cmp can compare, by the names of the agents.
type agents map[string]*agent

// agent is one agent of a batch.
type agent struct {
	resource    map[string]string
	points      oracle.Points     // such as nixl.errors{error.type=backend}
	start, time pcommon.Timestamp // of all points
}

// read converts a batch. Each agent and each point must appear only once.
func read(tb testing.TB, m pmetric.Metrics) agents {
	tb.Helper()
	all := make(agents)
	for _, rm := range m.ResourceMetrics().All() {
		a := readAgent(tb, rm)
		name := a.resource["nixl.agent.name"]
		if all[name] != nil {
			name += " in " + a.resource["nixl.telemetry.path"]
		}
		if all[name] != nil {
			tb.Fatalf("agent %s is in the batch twice", name)
		}
		all[name] = a
	}
	return all
}

func readAgent(tb testing.TB, rm pmetric.ResourceMetrics) *agent {
	tb.Helper()
	a := &agent{resource: make(map[string]string), points: make(oracle.Points)}
	for k, v := range rm.Resource().Attributes().All() {
		a.resource[k] = v.AsString()
	}
	add := func(name string, attrs pcommon.Map, start, time pcommon.Timestamp, value any) {
		key := name + labels(attrs)
		if _, twice := a.points[key]; twice {
			tb.Errorf("point %s is in the batch twice", key)
		}
		if start >= time || a.time != 0 && (a.start != start || a.time != time) {
			tb.Errorf("point %s is from %v to %v, earlier ones from %v to %v", key, start, time, a.start, a.time)
		}
		a.points[key], a.start, a.time = value, start, time
	}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			readMetric(tb, m, add)
		}
	}
	return a
}

func readMetric(tb testing.TB, m pmetric.Metric, add func(string, pcommon.Map, pcommon.Timestamp, pcommon.Timestamp, any)) {
	tb.Helper()
	switch m.Type() {
	case pmetric.MetricTypeSum, pmetric.MetricTypeGauge:
		for _, dp := range numbers(m).All() {
			add(m.Name(), dp.Attributes(), dp.StartTimestamp(), dp.Timestamp(), number(dp))
		}
	case pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			add(m.Name(), dp.Attributes(), dp.StartTimestamp(), dp.Timestamp(), oracle.Distribution{
				Count: dp.Count(), Sum: dp.Sum(), Min: dp.Min(), Max: dp.Max(),
				Bounds: dp.ExplicitBounds().AsRaw(), Counts: dp.BucketCounts().AsRaw(),
			})
		}
	default:
		tb.Errorf("metric %s is a %v", m.Name(), m.Type())
	}
}

func number(dp pmetric.NumberDataPoint) any {
	if dp.ValueType() == pmetric.NumberDataPointValueTypeDouble {
		return dp.DoubleValue()
	}
	return dp.IntValue()
}

// labels returns the attributes of a point as {a=b,c=bool true}, sorted by key.
func labels(attrs pcommon.Map) string {
	var list []string
	for k, v := range attrs.All() {
		if v.Type() == pcommon.ValueTypeBool {
			list = append(list, fmt.Sprintf("%s=bool %v", k, v.Bool()))
		} else {
			list = append(list, k+"="+v.AsString())
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ",") + "}"
}

// one returns the only agent of a batch.
func one(tb testing.TB, m pmetric.Metrics) *agent {
	tb.Helper()
	all := read(tb, m)
	if len(all) != 1 {
		tb.Fatalf("%d agents in the batch, want one", len(all))
	}
	for _, a := range all {
		return a
	}
	panic("unreachable")
}

// int returns the value of an integer point, or 0 if there is none.
func (a *agent) int(point string) int64 {
	if a == nil {
		return 0
	}
	v, _ := a.points[point].(int64)
	return v
}
