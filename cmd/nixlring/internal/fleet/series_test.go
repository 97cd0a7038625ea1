// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// In the second of three frames, 90 transfers take up to 1 ms, and 10 up to 8 ms; in the third, again. The first frame isn't asked for.
func TestQuantilesOfABackendAreTheSameForAllFormsOfHistograms(t *testing.T) {
	const step = 30 * time.Second
	begin := time.Unix(1_700_000_010, 0)
	values := func(first, second float64) (list []model.SamplePair) {
		for i, v := range []float64{first, second} {
			list = append(list, model.SamplePair{Timestamp: model.TimeFromUnix(begin.Add(time.Duration(i+1) * step).Unix()), Value: model.SampleValue(v)})
		}
		return list
	}
	stream := func(key, value string, first, second float64) *model.SampleStream {
		return &model.SampleStream{Metric: model.Metric{"nixl_agent_name": "a", model.LabelName(key): model.LabelValue(value)}, Values: values(first, second)}
	}
	whole := &model.SampleStream{Metric: model.Metric{"nixl_agent_name": "a"}}
	for i, n := range []model.FloatString{1, 2} {
		whole.Histograms = append(whole.Histograms, model.SampleHistogramPair{
			Timestamp: model.TimeFromUnix(begin.Add(time.Duration(i+1) * step).Unix()),
			Histogram: &model.SampleHistogram{Buckets: model.HistogramBuckets{{Lower: 0.0008, Upper: 0.001, Count: 90 * n}, {Lower: 0.006, Upper: 0.008, Count: 10 * n}}},
		})
	}
	for name, matrix := range map[string]model.Matrix{
		"explicit": {stream("le", "+Inf", 100, 200), stream("le", "0.001", 90, 180), stream("le", "0.008", 100, 200), stream("le", "0.0005", 0, 0)},
		"ranges":   {stream("vmrange", "8.0e-04...1.0e-03", 90, 180), stream("vmrange", "6.0e-03...8.0e-03", 10, 20)},
		"native":   {whole},
	} {
		s := newSeries(nil, "")
		s.begin(v1.Range{Start: begin, End: begin.Add(2 * step), Step: step})
		s.add(agentUp, model.Matrix{{Metric: model.Metric{"nixl_agent_name": "a"}, Values: append([]model.SamplePair{{Timestamp: model.TimeFromUnix(begin.Unix()), Value: 1}}, values(1, 1)...)}})
		s.add(metric{what: times}, matrix)
		frames := s.frames()
		for i, want := range []struct{ p50, p99 string }{{"", ""}, {"911 µs", "7.80 ms"}} {
			r := measure(&frames[i].Agents[0], &frames[i+1].Agents[0], step)
			if p50, p99 := Duration(r.P50), Duration(r.P99); p50 != want.p50 || p99 != want.p99 {
				t.Errorf("%s: frame %d: p50 %q, p99 %q, want %q, %q", name, i+1, p50, p99, want.p50, want.p99)
			}
		}
	}
}
