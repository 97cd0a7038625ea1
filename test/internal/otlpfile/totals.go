// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Totals are the values that a backend would show at the end, by agent. The key
// of an agent is the path of its ring if the resource has it, otherwise its name.
type Totals map[string]Series

// Series are the values of one agent, by metric and attributes:
// nixl.transfer.io{nixl.transfer.direction=transmit}.
type Series map[string]Value

// Value is the value of a series. A sum sets Int, a gauge Int or Float, and a
// histogram the other fields.
type Value struct {
	Int   int64
	Float float64

	Count    uint64
	Sum      float64
	Min, Max float64 // 0 in deltas, which have none
	Buckets  []uint64
}

// Agent returns the key of a resource in [Totals].
func Agent(resource pcommon.Resource) string {
	for _, key := range []string{"nixl.telemetry.path", "nixl.agent.name"} {
		if v, ok := resource.Attributes().Get(key); ok {
			return v.Str()
		}
	}
	return ""
}

// Name returns the key of a series.
func Name(metric string, attrs pcommon.Map) string {
	var pairs []string
	for key, v := range attrs.All() {
		pairs = append(pairs, key+"="+v.AsString())
	}
	if len(pairs) == 0 {
		return metric
	}
	slices.Sort(pairs)
	return metric + "{" + strings.Join(pairs, ",") + "}"
}

// Sum adds up points. For a cumulative series, it adds the last points of all
// start times. For a delta series, it adds all points. For any other series, it
// takes the newest point. Points that contradict each other and points that
// follow newer ones are errors.
func Sum(list []pmetric.Metrics) (Totals, error) { return newPoints().sum(list) }

// SumAnyOrder is like Sum, but accepts points that arrive late or twice, as from
// a persistent queue after a restart.
func SumAnyOrder(list []pmetric.Metrics) (Totals, error) {
	p := newPoints()
	p.anyOrder = true
	return p.sum(list)
}

func (p *points) sum(list []pmetric.Metrics) (Totals, error) {
	for _, m := range list {
		p.add(m)
	}
	return p.totals(), errors.Join(p.errs...)
}

// Starts returns the start times of each agent's counters, in ascending order.
func Starts(list []pmetric.Metrics) map[string][]pcommon.Timestamp {
	starts := make(map[string][]pcommon.Timestamp)
	points := newPoints()
	for _, m := range list {
		points.add(m)
	}
	for key, runs := range points.byKey {
		for start := range runs {
			if points.kinds[key.series] == counter && !slices.Contains(starts[key.agent], start) {
				starts[key.agent] = append(starts[key.agent], start)
			}
		}
	}
	for _, list := range starts {
		slices.Sort(list)
	}
	return starts
}

// plus returns the sum of the values of two runs of a counter or a histogram.
func (v Value) plus(o Value) Value {
	v.Int += o.Int
	v.Float += o.Float
	if o.Count > 0 && (v.Count == 0 || o.Min < v.Min) {
		v.Min = o.Min
	}
	v.Max = max(v.Max, o.Max)
	v.Count += o.Count
	v.Sum += o.Sum
	v.Buckets = slices.Clone(v.Buckets)
	for i, n := range o.Buckets {
		if i == len(v.Buckets) {
			v.Buckets = append(v.Buckets, 0)
		}
		v.Buckets[i] += n
	}
	return v
}

// totals adds up the runs of each series.
func (p *points) totals() Totals {
	totals := make(Totals)
	for key, runs := range p.byKey {
		if totals[key.agent] == nil {
			totals[key.agent] = make(Series)
		}
		totals[key.agent][key.series] = sumUp(runs, p.kinds[key.series] == counter)
	}
	return totals
}

func sumUp(runs map[pcommon.Timestamp]point, counter bool) (v Value) {
	if counter {
		for _, run := range runs {
			v = v.plus(run.Value)
		}
		return v
	}
	var newest point
	for _, run := range runs {
		newest = slices.MaxFunc([]point{newest, run}, func(a, b point) int { return cmp.Compare(a.time, b.time) })
	}
	return newest.Value
}

// String returns the fields that the value has.
func (v Value) String() string {
	switch {
	case v.Count > 0:
		return fmt.Sprintf("%d values, sum %v, %v to %v, buckets %v", v.Count, v.Sum, v.Min, v.Max, v.Buckets)
	case v.Float != 0:
		return fmt.Sprint(v.Float)
	default:
		return fmt.Sprint(v.Int)
	}
}
