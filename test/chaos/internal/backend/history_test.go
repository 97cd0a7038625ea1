// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// collection returns a collection with a counter and a histogram.
func collection(start, at pcommon.Timestamp, value int64) pmetric.Metrics {
	m := pmetric.NewMetrics()
	rm := m.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("nixl.telemetry.path", "/rings/a")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	counter := metrics.AppendEmpty()
	counter.SetName("counter")
	counter.SetEmptySum().SetIsMonotonic(true)
	n := counter.Sum().DataPoints().AppendEmpty()
	n.SetStartTimestamp(start)
	n.SetTimestamp(at)
	n.SetIntValue(value)
	histogram := metrics.AppendEmpty()
	histogram.SetName("x.duration")
	h := histogram.SetEmptyHistogram().DataPoints().AppendEmpty()
	h.SetStartTimestamp(start)
	h.SetTimestamp(at)
	h.SetCount(uint64(value))
	h.SetSum(float64(value) / 1e6)
	h.BucketCounts().FromRaw([]uint64{0, uint64(value)})
	return m
}

func TestContradictionsAreIndependentOfTheOrderOfPoints(t *testing.T) {
	for name, tc := range map[string]struct {
		points []pmetric.Metrics
		wrong  string // part of the first contradiction
	}{
		"grows":            {points: []pmetric.Metrics{collection(1, 10, 5), collection(1, 20, 5), collection(1, 30, 9)}},
		"late":             {points: []pmetric.Metrics{collection(1, 10, 5), collection(1, 30, 9), collection(1, 20, 7)}},
		"twice":            {points: []pmetric.Metrics{collection(1, 30, 9), collection(1, 30, 9)}},
		"goes back":        {points: []pmetric.Metrics{collection(1, 10, 10), collection(1, 30, 9)}, wrong: "decreased from 10 to 9"},
		"went back":        {points: []pmetric.Metrics{collection(1, 30, 9), collection(1, 10, 10)}, wrong: "decreased from 10 to 9"},
		"twice, different": {points: []pmetric.Metrics{collection(1, 30, 9), collection(1, 30, 8)}, wrong: "values 9 and 8"},
		"starts again":     {points: []pmetric.Metrics{collection(1, 10, 5), collection(2, 30, 9)}, wrong: "starts at"},
	} {
		t.Run(name, func(t *testing.T) {
			sums := otlpfile.NewSumsAnyOrder()
			for _, m := range tc.points {
				sums.Add(m)
			}
			got, wrong := totals(sums)["/rings/a"], contradictions(sums)
			if tc.wrong == "" && (got["counter"] != 9 || got["x.duration"+ledger.Count] != 9 || got["x.duration"+ledger.Sum] != 9 || got["x.duration"+ledger.Bucket(1)] != 9) {
				t.Errorf("totals are %v", got)
			}
			switch {
			case tc.wrong == "" && len(wrong) > 0:
				t.Errorf("contradictions: %v", wrong)
			case tc.wrong != "" && (len(wrong) == 0 || !strings.Contains(wrong[0], tc.wrong)):
				t.Errorf("contradictions: %v, want one with %q", wrong, tc.wrong)
			}
		})
	}
}
