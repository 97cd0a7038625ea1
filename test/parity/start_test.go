// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The start time of each point is when the agent was discovered or created, even
// if the series began later. It doesn't change between collections.
func TestStartTimesStayTheSameFromTheDiscoveryOfTheAgent(t *testing.T) {
	ops := stream(7, 200)
	for name, run := range map[string]func(*testing.T, []operation) (time.Time, []pmetric.Metrics){
		"ring":   collectRingTwice,
		"bridge": collectBridgeTwice,
		"rings":  collectRingsTwice,
	} {
		t.Run(name, func(t *testing.T) {
			made := time.Now()
			first, batches := run(t, ops)
			if len(batches) != 2 {
				t.Fatalf("%d collections, want 2", len(batches))
			}
			starts := make(map[string]pcommon.Timestamp)
			for _, b := range batches {
				eachStart(b, func(series string, start, at pcommon.Timestamp) {
					if start >= at {
						t.Errorf("%s starts at %v, which isn't before its time %v", series, start, at)
					}
					if at := start.AsTime(); at.Before(made) || at.After(first) {
						t.Errorf("%s starts at %v, want from %v to %v", series, at, made, first)
					}
					if old, ok := starts[series]; ok && old != start {
						t.Errorf("the start time of %s changed from %v to %v", series, old, start)
					}
					starts[series] = start
				})
			}
			if len(starts) < 30 {
				t.Errorf("only %d series", len(starts))
			}
		})
	}
}

// collectRingTwice collects before the first operation and after the last. It
// returns the time of the first operation and the collections.
func collectRingTwice(t *testing.T, ops []operation) (time.Time, []pmetric.Metrics) {
	t.Helper()
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, agentName), ringbuf.V4, capacity)
	must.OK(t, err)
	defer w.Close()
	c := startReceiver(t, dir, func(cfg *nixlshmreceiver.Config) { cfg.InitialDelay = 0 })
	<-c.came
	first := time.Now()
	for _, op := range ops {
		if _, err := w.PushBatch(op.events); err != nil {
			t.Fatal(err)
		}
	}
	c.stop()
	return first, c.all()
}

func collectBridgeTwice(t *testing.T, ops []operation) (time.Time, []pmetric.Metrics) {
	t.Helper()
	b := startBackend(t)
	provider := pipeline(t, b)
	a, err := agent.New(agentName, agent.WithMeterProvider(provider))
	must.OK(t, err)
	defer a.Close()
	must.OK(t, provider.ForceFlush(t.Context()))
	first := time.Now()
	for _, op := range ops {
		op.do(a)
	}
	must.OK(t, provider.Shutdown(t.Context()))
	return first, b.all()
}

func collectRingsTwice(t *testing.T, ops []operation) (time.Time, []pmetric.Metrics) {
	t.Helper()
	dir, b := t.TempDir(), startBackend(t)
	w := newRing(t, filepath.Join(dir, agentName), capacity)
	p, err := rings.Open(rings.Config{Directories: []string{dir}, Logger: slog.New(slog.DiscardHandler)})
	must.OK(t, err)
	defer p.Close()
	provider := pipeline(t, b, sdkmetric.WithProducer(p))
	must.OK(t, provider.ForceFlush(t.Context()))
	first := time.Now()
	for _, op := range ops {
		push(t, w, op.events...)
	}
	must.OK(t, provider.Shutdown(t.Context()))
	return first, b.all()
}

func eachStart(m pmetric.Metrics, fn func(series string, start, at pcommon.Timestamp)) {
	for _, rm := range m.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, dp := range m.Sum().DataPoints().All() {
						fn(m.Name()+attributes(dp.Attributes(), ""), dp.StartTimestamp(), dp.Timestamp())
					}
				case pmetric.MetricTypeGauge:
					for _, dp := range m.Gauge().DataPoints().All() {
						fn(m.Name()+attributes(dp.Attributes(), ""), dp.StartTimestamp(), dp.Timestamp())
					}
				case pmetric.MetricTypeHistogram:
					for _, dp := range m.Histogram().DataPoints().All() {
						fn(m.Name()+attributes(dp.Attributes(), ""), dp.StartTimestamp(), dp.Timestamp())
					}
				}
			}
		}
	}
}
