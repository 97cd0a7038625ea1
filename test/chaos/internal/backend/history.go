// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// history is the state of all monotonic series. It doesn't depend on the order of points, because a
// queue may deliver points late or twice.
type history struct {
	agents map[string]*agent
	wrong  []string
}

type agent struct {
	start  pcommon.Timestamp // start time of all its series
	series map[string]point
}

type point struct {
	time  pcommon.Timestamp
	value uint64
}

func newHistory() history { return history{agents: make(map[string]*agent)} }

func (h *history) totals() map[string]ledger.Series {
	totals := make(map[string]ledger.Series, len(h.agents))
	for path, a := range h.agents {
		totals[path] = make(ledger.Series, len(a.series))
		for name, p := range a.series {
			totals[path][name] = p.value
		}
	}
	return totals
}

func (h *history) add(m pmetric.Metrics) {
	for _, rm := range m.ResourceMetrics().All() {
		path := otlpfile.Agent(rm.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				h.metric(path, m)
			}
		}
	}
}

// metric adds counters and histograms, and ignores other metrics.
func (h *history) metric(path string, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		if !m.Sum().IsMonotonic() {
			return
		}
		for _, dp := range m.Sum().DataPoints().All() {
			h.put(path, otlpfile.Name(m.Name(), dp.Attributes()), dp.StartTimestamp(), dp.Timestamp(), uint64(dp.IntValue()))
		}
	case pmetric.MetricTypeHistogram:
		// Convert to the ring's unit, in which values are integers.
		unit := 1.0
		if strings.HasSuffix(m.Name(), ".duration") {
			unit = 1e6
		}
		for _, dp := range m.Histogram().DataPoints().All() {
			name := otlpfile.Name(m.Name(), dp.Attributes())
			put := func(part string, v uint64) { h.put(path, name+part, dp.StartTimestamp(), dp.Timestamp(), v) }
			put(ledger.Count, dp.Count())
			put(ledger.Sum, uint64(math.Round(dp.Sum()*unit)))
			for i, n := range dp.BucketCounts().All() {
				put(ledger.Bucket(i), n)
			}
		}
	default:
	}
}

func (h *history) put(path, name string, start, at pcommon.Timestamp, value uint64) {
	a := h.agents[path]
	if a == nil {
		a = &agent{start: start, series: make(map[string]point)}
		h.agents[path] = a
	}
	if start != a.start {
		h.contradiction("%s: %s starts at %v at %v, and %v before", path, name, start, at, a.start)
		a.start = start
	}
	last, seen := a.series[name]
	switch {
	case seen && at > last.time && value < last.value, seen && at < last.time && value > last.value,
		seen && at == last.time && value != last.value:
		h.contradiction("%s: %s is %d at %v, and %d at %v", path, name, value, at, last.value, last.time)
	}
	if !seen || at > last.time {
		a.series[name] = point{at, value}
	}
}

// contradiction records the first contradictions, because one fault can cause many.
func (h *history) contradiction(format string, args ...any) {
	const most = 50
	if len(h.wrong) < most {
		h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
	}
}
