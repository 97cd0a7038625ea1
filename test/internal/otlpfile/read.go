// Package otlpfile reads what the Collector's file exporter has written, and
// adds it up as a backend would.
package otlpfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Read reads a file of JSON lines. A last line that isn't whole yet is left
// out, and so is a file that isn't there yet.
func Read(path string) ([]pmetric.Metrics, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var list []pmetric.Metrics
	var unmarshaler pmetric.JSONUnmarshaler
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return list, nil
		}
		metrics, err := unmarshaler.UnmarshalMetrics(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		list = append(list, metrics)
		text = rest
	}
}

// Time is the time of the points of one collection.
func Time(m pmetric.Metrics) (newest pcommon.Timestamp) {
	for _, rm := range m.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				newest = max(newest, metricTime(metric))
			}
		}
	}
	return newest
}

func metricTime(m pmetric.Metric) (newest pcommon.Timestamp) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, dp := range m.Gauge().DataPoints().All() {
			newest = max(newest, dp.Timestamp())
		}
	case pmetric.MetricTypeSum:
		for _, dp := range m.Sum().DataPoints().All() {
			newest = max(newest, dp.Timestamp())
		}
	case pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			newest = max(newest, dp.Timestamp())
		}
	default:
	}
	return newest
}

// Sorted are collections by their time. A queue that is taken up again may
// bring them in another order.
func Sorted(list []pmetric.Metrics) []pmetric.Metrics {
	return slices.SortedStableFunc(slices.Values(list), func(a, b pmetric.Metrics) int { return cmp.Compare(Time(a), Time(b)) })
}

// Cumulative are the names of the counters and histograms that count from a
// start, rather than from the point before.
func Cumulative(list []pmetric.Metrics) map[string]bool {
	names := make(map[string]bool)
	for _, collection := range list {
		for _, rm := range collection.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic() && !isDelta(m.Sum().AggregationTemporality()) ||
						m.Type() == pmetric.MetricTypeHistogram && !isDelta(m.Histogram().AggregationTemporality()) {
						names[m.Name()] = true
					}
				}
			}
		}
	}
	return names
}
