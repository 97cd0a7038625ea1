// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Totals are the values that a backend would show at the end if it added up all series of
// an agent. The key of an agent is the path of its ring if the resource has it, otherwise
// its name.
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

// below reports whether a part of a counter or a histogram is less than in another value.
func (v Value) below(o Value) bool {
	for i, n := range o.Buckets {
		if i >= len(v.Buckets) || v.Buckets[i] < n {
			return true
		}
	}
	return v.Int < o.Int || v.Count < o.Count || v.Sum < o.Sum
}

// Totals adds up the runs of each series, and the series of all resources of an agent.
func (p *Sums) Totals() (Totals, error) {
	totals := make(Totals)
	add(p, totals, func(k key) string { return k.agent })
	return totals, errors.Join(p.errs...)
}

// Resource is what has arrived with the same attributes of the resource.
type Resource struct {
	Attributes map[string]string
	Series     Series
}

// Resources is like Totals, but doesn't add up resources.
func (p *Sums) Resources() ([]Resource, error) {
	byResource := make(map[string]Series)
	add(p, byResource, func(k key) string { return k.resource })
	list := make([]Resource, 0, len(byResource))
	for name, series := range byResource {
		list = append(list, Resource{p.resources[name], series})
	}
	return list, errors.Join(p.errs...)
}

// add adds up the runs of each series, and the series of all resources in a group.
func add[M ~map[string]Series](p *Sums, to M, group func(key) string) {
	type name struct{ group, series string }
	runs := make(map[name][]point)
	for key, byStart := range p.byKey {
		n := name{group(key), key.series}
		runs[n] = slices.AppendSeq(runs[n], maps.Values(byStart))
	}
	for n, list := range runs {
		if to[n.group] == nil {
			to[n.group] = make(Series)
		}
		to[n.group][n.series] = sumUp(list, p.kinds[n.series] == counter)
	}
}

func sumUp(runs []point, counter bool) (v Value) {
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
