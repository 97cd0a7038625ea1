// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math"
	"slices"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// The p50 and p99 that a backend computes from the histogram of a real session are
// within one bucket and 20% of the true values: in total, for each device, and for
// each operation.
func TestQuantilesOfARealSessionAreWithin20Percent(t *testing.T) {
	s, reader := openMeasured(t)
	truth := map[string][]float64{}
	for _, r := range rowsOf(t, read(t, upstreamPath(upstream[0]+".csv"))) {
		recordAll(t, s, packetOf(r))
		for _, group := range []string{"all", r.Device, r.Device + " " + r.Operation} {
			truth[group] = append(truth[group], r.Duration.Seconds())
		}
	}
	exported := groupHistograms(t, reader)
	for group, values := range truth {
		slices.Sort(values)
		h := exported[group]
		for _, q := range []float64{0.5, 0.99} {
			want := values[int(math.Ceil(q*float64(len(values))))-1]
			got := h.quantile(q)
			if off := math.Abs(got/want - 1); off > 0.2 {
				t.Errorf("%s: p%v is %v, %.0f%% off the true value %v", group, 100*q, got, 100*off, want)
			}
			if apart := h.bucket(got) - h.bucket(want); apart < -1 || apart > 1 {
				t.Errorf("%s: p%v is %v, %d buckets from the true value %v", group, 100*q, got, apart, want)
			}
		}
	}
}

// histogram is an exported histogram: a count for each bound, and one for values above
// the last bound.
type histogram struct {
	bounds []float64
	counts []uint64
}

// groupHistograms adds up the exported histograms by group, as sum by (…) does.
func groupHistograms(t *testing.T, reader sdkmetric.Reader) map[string]*histogram {
	t.Helper()
	groups := map[string]*histogram{}
	points := metrictest.Data[metricdata.Histogram[float64]](t, collect(t, reader), semconv.PacketDuration.Name).DataPoints
	for _, p := range points {
		device, _ := p.Attributes.Value(semconv.DeviceName)
		operation, _ := p.Attributes.Value(semconv.Operation)
		for _, group := range []string{"all", device.AsString(), device.AsString() + " " + operation.AsString()} {
			if groups[group] == nil {
				groups[group] = &histogram{p.Bounds, make([]uint64, len(p.BucketCounts))}
			}
			for i, n := range p.BucketCounts {
				groups[group].counts[i] += n
			}
		}
	}
	return groups
}

// quantile interpolates linearly within the quantile's bucket, as Prometheus'
// histogram_quantile does. The first bucket starts at 0.
func (h *histogram) quantile(q float64) float64 {
	var total uint64
	for _, n := range h.counts {
		total += n
	}
	rank := q * float64(total)
	var below float64
	for i, n := range h.counts {
		if below+float64(n) < rank {
			below += float64(n)
			continue
		}
		if i == len(h.bounds) {
			return h.bounds[i-1]
		}
		start := 0.0
		if i > 0 {
			start = h.bounds[i-1]
		}
		return start + (h.bounds[i]-start)*(rank-below)/float64(n)
	}
	return math.NaN()
}

// bucket returns the index of the bucket that a value falls into.
func (h *histogram) bucket(v float64) int {
	i, _ := slices.BinarySearch(h.bounds, v)
	return i
}
