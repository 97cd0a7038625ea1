// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpfile reads the output of the Collector's file exporter and adds
// up the metrics as a backend would.
package otlpfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// File is a file of JSON lines that may grow while it is read. Each line is one
// collection and is read once.
type File struct {
	path        string
	offset      int64 // of the first byte that wasn't read yet
	lines       int   // lines before offset
	collections []pmetric.Metrics
	points      *Sums
}

// NewFile returns the file at path, which needn't exist yet.
func NewFile(path string) *File { return &File{path: path, points: NewSums()} }

// Path returns the file's path.
func (f *File) Path() string { return f.path }

// Collections returns the collections of all complete lines in the file.
func (f *File) Collections() ([]pmetric.Metrics, error) {
	list, err := f.Next()
	for _, metrics := range list {
		f.points.Add(metrics)
	}
	f.collections = append(f.collections, list...)
	return f.collections, err
}

// Next returns the collections of the complete lines since the last call of Next
// or Collections. It doesn't store them.
func (f *File) Next() (list []pmetric.Metrics, err error) {
	text, err := f.unread()
	if err != nil {
		return nil, err
	}
	var unmarshaler pmetric.JSONUnmarshaler
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return list, nil
		}
		metrics, err := unmarshaler.UnmarshalMetrics(line)
		if err != nil {
			return list, fmt.Errorf("%s:%d: %w", f.path, f.lines+1, err)
		}
		list = append(list, metrics)
		f.offset += int64(len(line)) + 1
		f.lines++
		text = rest
	}
}

// unread returns the text after the last complete line that was read.
func (f *File) unread() ([]byte, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, f.offset, math.MaxInt64-f.offset))
}

// Totals returns the [Sums] of the file's collections.
func (f *File) Totals() (Totals, error) {
	if _, err := f.Collections(); err != nil {
		return nil, err
	}
	totals, err := f.points.Totals()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return totals, nil
}

// Times returns the set of the times of all points. A line can have several
// times because a queue may merge collections.
func Times(list []pmetric.Metrics) map[pcommon.Timestamp]bool {
	times := make(map[pcommon.Timestamp]bool)
	for m := range metrics(list) {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, dp := range m.Gauge().DataPoints().All() {
				times[dp.Timestamp()] = true
			}
		case pmetric.MetricTypeSum:
			for _, dp := range m.Sum().DataPoints().All() {
				times[dp.Timestamp()] = true
			}
		case pmetric.MetricTypeHistogram:
			for _, dp := range m.Histogram().DataPoints().All() {
				times[dp.Timestamp()] = true
			}
		default:
		}
	}
	return times
}

// Temporalities returns the set of the temporalities of counters and histograms.
func Temporalities(list []pmetric.Metrics) map[pmetric.AggregationTemporality]bool {
	all := make(map[pmetric.AggregationTemporality]bool)
	for m := range metrics(list) {
		switch {
		case m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic():
			all[m.Sum().AggregationTemporality()] = true
		case m.Type() == pmetric.MetricTypeHistogram:
			all[m.Histogram().AggregationTemporality()] = true
		}
	}
	return all
}

// metrics iterates over the metrics of all resources.
func metrics(list []pmetric.Metrics) iter.Seq[pmetric.Metric] {
	return func(yield func(pmetric.Metric) bool) {
		for _, collection := range list {
			for _, rm := range collection.ResourceMetrics().All() {
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						if !yield(m) {
							return
						}
					}
				}
			}
		}
	}
}
