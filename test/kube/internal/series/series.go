// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package series stores the metrics that the OTLP sink of the cluster test
// receives: the newest point of every run of every series.
package series

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Series is one series of a counter or a histogram. The value of a histogram is
// its count.
type Series struct {
	Resource   map[string]any
	Metric     string
	Attributes map[string]any
	Runs       map[string]uint64 // the newest value, by start time
}

// Store is safe for concurrent use.
type Store struct {
	mu     sync.Mutex
	byKey  map[string]*Series
	faults []string
}

// Contents is the contents of a Store, for JSON.
type Contents struct {
	Series []*Series
	Faults []string // counters that decreased
}

// NewStore returns an empty Store.
func NewStore() *Store { return &Store{byKey: make(map[string]*Series)} }

// Contents returns a copy of the store's contents.
func (s *Store) Contents() Contents {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Contents{Faults: append([]string(nil), s.faults...)}
	for _, series := range s.byKey {
		kept := *series
		kept.Runs = maps.Clone(series.Runs)
		c.Series = append(c.Series, &kept)
	}
	return c
}

// Add stores the counters and histograms of one request.
func (s *Store) Add(metrics pmetric.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range metrics.ResourceMetrics().All() {
		resource := rm.Resource().Attributes().AsRaw()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				s.metric(resource, m)
			}
		}
	}
}

func (s *Store) metric(resource map[string]any, m pmetric.Metric) {
	switch {
	case m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic():
		for _, dp := range m.Sum().DataPoints().All() {
			s.point(resource, m.Name(), dp.Attributes(), dp.StartTimestamp(), uint64(dp.IntValue()))
		}
	case m.Type() == pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			s.point(resource, m.Name(), dp.Attributes(), dp.StartTimestamp(), dp.Count())
		}
	default:
	}
}

func (s *Store) point(resource map[string]any, metric string, attributes pcommon.Map, start pcommon.Timestamp, value uint64) {
	raw := attributes.AsRaw()
	key := fmt.Sprint(resource, metric, raw) // fmt sorts the keys of maps
	series := s.byKey[key]
	if series == nil {
		series = &Series{Resource: resource, Metric: metric, Attributes: raw, Runs: make(map[string]uint64)}
		s.byKey[key] = series
	}
	run := start.AsTime().Format(time.RFC3339Nano)
	if before := series.Runs[run]; value < before {
		s.faults = append(s.faults, fmt.Sprintf("%s decreased from %d to %d", key, before, value))
	}
	series.Runs[run] = value
}
