// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	signal "go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Every slow transfer is delivered exactly once, or dropped exactly once if the next
// consumer rejects it permanently.
func TestLogsFulfillTheConsumeContract(t *testing.T) {
	g := &generator{t: t, dir: t.TempDir(), layout: ringbuf.V4, events: func(id uint64) []ringbuf.Event {
		return write(id, 2_000_000, 1)
	}}
	checkContract(t, signal.SignalLogs, g, func(f receiver.Factory) receiver.Factory {
		return receiver.NewFactory(f.Type(), f.CreateDefaultConfig, receiver.WithLogs(
			func(ctx context.Context, settings receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
				marked, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
					for _, r := range logRecords(logs) {
						size, _ := r.Attributes().Get(semconv.TransferSizeBytes)
						r.Attributes().PutStr(receivertest.UniqueIDAttrName, size.AsString())
					}
					return next.ConsumeLogs(ctx, logs)
				})
				if err != nil {
					return nil, err
				}
				return f.CreateLogs(ctx, settings, cfg, marked)
			}, f.LogsStability()))
	})
}

func logRecords(logs plog.Logs) (list []plog.LogRecord) {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				list = append(list, r)
			}
		}
	}
	return list
}

// Totals are cumulative, so the next export includes what the next consumer
// rejected. The test gives each event a series of its own, and forwards a series
// until the consumer has accepted it or rejected it permanently.
func TestMetricsFulfillTheConsumeContract(t *testing.T) {
	g := &generator{t: t, dir: t.TempDir(), layout: ringbuf.V1, events: func(id uint64) []ringbuf.Event {
		return []ringbuf.Event{ringbuf.NewNamedEvent(ringbuf.CategoryCustom, strconv.FormatUint(id, 10), 1)}
	}}
	checkContract(t, signal.SignalMetrics, g, func(f receiver.Factory) receiver.Factory {
		return receiver.NewFactory(f.Type(), f.CreateDefaultConfig, receiver.WithMetrics(
			func(ctx context.Context, settings receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
				decided := make(map[string]bool)
				onlyNew, err := consumer.NewMetrics(func(ctx context.Context, metrics pmetric.Metrics) error {
					forward, names := newEvents(metrics, decided)
					if len(names) == 0 {
						return nil
					}
					err := next.ConsumeMetrics(ctx, forward)
					if err == nil || consumererror.IsPermanent(err) {
						for _, name := range names {
							decided[name] = true
						}
					}
					return err
				})
				if err != nil {
					return nil, err
				}
				return f.CreateMetrics(ctx, settings, cfg, onlyNew)
			}, f.MetricsStability()))
	})
}

// newEvents returns the points of the metric nixl.events whose names aren't decided
// yet.
func newEvents(metrics pmetric.Metrics, decided map[string]bool) (forward pmetric.Metrics, names []string) {
	forward = pmetric.NewMetrics()
	to := forward.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptySum().DataPoints()
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != semconv.Events.Name {
				continue
			}
			for _, dp := range m.Sum().DataPoints().All() {
				if name, _ := dp.Attributes().Get(semconv.EventName); !decided[name.Str()] {
					names = append(names, name.Str())
					to.AppendEmpty().Attributes().PutStr(receivertest.UniqueIDAttrName, name.Str())
				}
			}
		}
	}
	return forward, names
}

func checkContract(t *testing.T, of signal.Signal, g *generator, wrap func(receiver.Factory) receiver.Factory) {
	t.Helper()
	h := newHarness(t, g.dir)
	h.cfg.InitialDelay, h.cfg.CollectionInterval = 0, 5*time.Millisecond
	h.cfg.Logs.Rate = 1e6
	receivertest.CheckConsumeContract(receivertest.CheckConsumeContractParams{
		T: t, Factory: wrap(newFactory(h.on)), Signal: of, Config: h.cfg, Generator: g, GenerateCount: 60, // the limit on names is 64
	})
}

// generator is an agent that writes events to a ring, a new one for each scenario.
type generator struct {
	t      *testing.T
	dir    string
	layout ringbuf.Layout
	events func(id uint64) []ringbuf.Event

	mu    sync.Mutex
	rings int
	id    uint64
	ring  *ringbuf.Writer
}

func (g *generator) Start() {
	g.rings++
	w, err := ringbuf.Create(filepath.Join(g.dir, fmt.Sprint("agent-", g.rings)), g.layout, 4096)
	if err != nil {
		g.t.Fatal(err)
	}
	g.ring = w
}

func (g *generator) Stop() {
	if err := g.ring.Close(); err != nil {
		g.t.Error(err)
	}
}

func (g *generator) Generate() []receivertest.UniqueIDAttrVal {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id++
	push(g.t, g.ring, g.events(g.id)...)
	return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(strconv.FormatUint(g.id, 10))}
}
