// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rings_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// sums adds up points by metric and attributes.
type sums map[string]float64

// add adds the points of an export, or with delta temporality, of one export of many.
// Exponential buckets are merged to a scale that all exports can have.
func (s sums) add(t *testing.T, e *metrictest.Exporter) {
	t.Helper()
	for _, m := range e.Metrics {
		temporality := e.Of
		key := func(set attribute.Set, part string) string {
			return m.Name + "{" + set.Encoded(attribute.DefaultEncoder()) + "} " + part
		}
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			if !d.IsMonotonic {
				continue
			}
			temporality = d.Temporality
			for _, p := range d.DataPoints {
				s[key(p.Attributes, "sum")] += float64(p.Value)
			}
		case metricdata.Histogram[float64]:
			temporality = d.Temporality
			for _, p := range d.DataPoints {
				s[key(p.Attributes, "count")] += float64(p.Count)
				s[key(p.Attributes, "sum")] += p.Sum
				for b, n := range p.BucketCounts {
					s[key(p.Attributes, fmt.Sprint("bucket ", b))] += float64(n)
				}
			}
		case metricdata.ExponentialHistogram[float64]:
			temporality = d.Temporality
			for _, p := range d.DataPoints {
				s[key(p.Attributes, "count")] += float64(p.Count)
				s[key(p.Attributes, "sum")] += p.Sum
				s[key(p.Attributes, "zero")] += float64(p.ZeroCount)
				for b, n := range p.PositiveBucket.Counts {
					if n > p.Count {
						t.Errorf("%s: bucket %d has %d of %d values", m.Name, b, n, p.Count)
					}
					const coarse = -4
					at := (p.PositiveBucket.Offset + int32(b)) >> (p.Scale - coarse)
					s[key(p.Attributes, fmt.Sprint("bucket ", at))] += float64(n)
				}
			}
		}
		if temporality != e.Of {
			t.Errorf("%s is %v, want %v", m.Name, temporality, e.Of)
		}
	}
}

// The deltas of a reader add up to the totals of another.
func TestReaderHasTheTemporalityOfItsExporter(t *testing.T) {
	for name, buckets := range map[string]int{"explicit": 0, "exponential": 4} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ring := newRing(t, dir)
			w := newWorld(t, rings.Config{Directories: []string{dir}, ExponentialBuckets: buckets})
			delta, cumulative := &metrictest.Exporter{Of: metricdata.DeltaTemporality}, &metrictest.Exporter{Of: metricdata.CumulativeTemporality}
			provider := sdkmetric.NewMeterProvider(
				sdkmetric.WithReader(w.Reader(delta, sdkmetric.WithInterval(time.Hour))),
				sdkmetric.WithReader(w.Reader(cumulative, sdkmetric.WithInterval(time.Hour))))
			random := rand.New(rand.NewPCG(1, 2))
			got, want := make(sums), make(sums)
			for round := range 20 {
				if round == 10 { // the agent restarts; its totals continue
					ring = newRing(t, dir)
				}
				for range round % 4 {
					micros := uint64(random.ExpFloat64() * float64(int64(1)<<(2*round)))
					push(t, ring, ringbuf.NewEvent(ringbuf.TypeXferPostTime, micros/2), ringbuf.NewEvent(ringbuf.TypeXferTime, micros),
						ringbuf.NewEvent(ringbuf.TypeTxBytes, uint64(random.IntN(1<<20))), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1))
				}
				push(t, ring, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
				must.OK(t, provider.ForceFlush(t.Context()))
				got.add(t, delta)
			}
			if err := w.Close(); err != nil { // waits for the ring's last events
				t.Fatal(err)
			}
			for range 2 {
				must.OK(t, provider.ForceFlush(t.Context()))
				got.add(t, delta)
			}
			want.add(t, cumulative)
			if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-9)); d != "" {
				t.Errorf("sums (-cumulative +of deltas):\n%s", d)
			}
			if n := want["nixl.errors{error.type=backend,nixl.agent.name=a} sum"]; n != 20 {
				t.Errorf("%v errors, want 20", n)
			}
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A delta begins where the one before ended, even if the clock is set back.
func TestDeltasHaveNoGaps(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.V4)
	var ahead atomic.Int64
	clock := newClock()
	w := newWorld(t, rings.Config{Directories: []string{dir}, Now: func() time.Time { return clock().Add(time.Duration(ahead.Load())) }})
	e := &metrictest.Exporter{Of: metricdata.DeltaTemporality}
	provider := e.Provider(w.Reader)
	var end time.Time
	for _, offset := range []time.Duration{0, time.Hour, time.Minute} {
		push(t, ring, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
		ahead.Store(int64(offset))
		must.OK(t, provider.ForceFlush(t.Context()))
		p := metrictest.Data[metricdata.Sum[int64]](t, e.Metrics, semconv.Errors.Name).DataPoints[0]
		if !end.IsZero() && !p.StartTime.Equal(end) || p.StartTime.After(p.Time) {
			t.Errorf("a delta from %v to %v, after one that ends at %v", p.StartTime, p.Time, end)
		}
		end = p.Time
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The highest fill level since its own last collection.
func TestEachReaderHasItsOwnUtilization(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.V4)
	w := newWorld(t, rings.Config{Directories: []string{dir}})
	one, two := &metrictest.Exporter{}, &metrictest.Exporter{}
	first := one.Provider(w.Reader)
	second := two.Provider(w.Reader)
	utilization := func(p *sdkmetric.MeterProvider, e *metrictest.Exporter) float64 {
		must.OK(t, p.ForceFlush(t.Context()))
		return metrictest.Data[metricdata.Gauge[float64]](t, e.Metrics, semconv.RingUtilization.Name).DataPoints[0].Value
	}
	push(t, ring, slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)}, 32)...)
	high := utilization(first, one)
	low := utilization(first, one)
	if got := utilization(second, two); high <= low || got != high {
		t.Errorf("the first reader has %v and %v, the second %v", high, low, got)
	}
	for _, p := range []*sdkmetric.MeterProvider{first, second} {
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func push(t *testing.T, ring *ringbuf.Writer, events ...ringbuf.Event) {
	t.Helper()
	if n, err := ring.PushBatch(events); n < len(events) {
		t.Fatalf("only %d events fit: %v", n, err)
	}
}

// newRing creates the ring of agent a, with room for all events of a test.
func newRing(t *testing.T, dir string) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(filepath.Join(dir, "a"), ringbuf.V4, 4096)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}
