// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// wantEvents returns the series of a ring with these events. The ring was full if they fill
// it exactly; more events were read in parts.
func wantEvents(l ringbuf.Layout, events []ringbuf.Event, capacity int) otlpfile.Series {
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
	return seriesOf(points)
}

func seriesOf(points oracle.Points) otlpfile.Series {
	series := make(otlpfile.Series)
	for name, value := range points {
		switch v := value.(type) {
		case int64:
			series[name] = otlpfile.Value{Int: v}
		case float64:
			series[name] = otlpfile.Value{Float: v}
		case oracle.Distribution:
			series[name] = otlpfile.Value{Count: v.Count, Sum: v.Sum, Min: v.Min, Max: v.Max, Buckets: v.Counts}
		}
	}
	return series
}
