// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Diff returns how totals differ, except for the series in but and those that depend on timing. Sums
// of floating-point numbers depend on their order, so they are equal if they are close.
func Diff(want, got Totals, but ...string) string {
	but = append(but, "nixl.telemetry.ring.utilization", "nixl.agent.up")
	return cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateEmpty(),
		cmpopts.IgnoreMapEntries(func(series string, _ Value) bool { return slices.Contains(but, series) }))
}

// Want returns the series of points that the receiver reports by default: not those of the newest event.
func Want(points oracle.Points) Series {
	series := make(Series)
	for name, value := range points {
		if strings.Contains(name, ".last.") {
			continue
		}
		switch v := value.(type) {
		case int64:
			series[name] = Value{Int: v}
		case float64:
			series[name] = Value{Float: v}
		case oracle.Distribution:
			series[name] = Value{Count: v.Count, Sum: v.Sum, Min: v.Min, Max: v.Max, Buckets: v.Counts}
		}
	}
	return series
}

// WantEvents returns the series of a ring with these events. The ring was full if they fill it
// exactly; more events were read in parts.
func WantEvents(l ringbuf.Layout, events []ringbuf.Event, capacity int) Series {
	o := oracle.New()
	o.Opened()
	for _, e := range events {
		o.Add(l, e)
	}
	points, most := o.Points(), 0
	if len(events) == capacity-1 {
		most = len(events)
	}
	points.Ring(o, l, uint64(capacity), uint64(most))
	return Want(points)
}

// WantReport returns the totals of simulated agents.
func WantReport(tb testing.TB, r simulate.Report) Totals {
	tb.Helper()
	want := make(Totals)
	for path, a := range r.Agents {
		layout, err := ringbuf.ParseLayout(a.Layout)
		must.OK(tb, err)
		want[path] = WantEvents(layout, nil, a.Capacity)
		maps.Copy(want[path], Want(a.Points))
		want[path]["nixl.telemetry.ring.restarts"] = Value{Int: int64(max(0, a.Starts-1))}
	}
	return want
}
