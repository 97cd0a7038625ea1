// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Producer reads the rings of agents and passes the totals to readers of the SDK.
// It is safe for concurrent use. A nil *Producer reads nothing.
//
// Use [Producer.Reader] for an exporter. Other readers, such as that of
// exporters/prometheus, take the Producer itself, whose totals are cumulative. Readers can
// share a Producer: each gets all totals. But nixl.telemetry.ring.utilization is the maximum
// since the last collection of any reader.
type Producer struct {
	host   *engine.Engine
	log    *slog.Logger
	clock  func() time.Time
	build  builder // without data
	closed atomic.Bool

	mu   sync.Mutex                // guards last; held during collections
	last []metricdata.ScopeMetrics // the totals at Close
}

var _ sdkmetric.Producer = (*Producer)(nil)

// Open starts discovering and draining rings. It is not an error if a directory doesn't
// exist yet. The error names the field of the configuration or the NIXL environment
// variable with an invalid value.
//
// Pass the Producer to a reader: events are drained even if nobody collects their metrics.
func Open(c Config) (*Producer, error) {
	if c.clock == nil {
		c.clock = time.Now
	}
	host, err := hostName()
	cfg, invalid := c.engine()
	p := &Producer{
		log: cmp.Or(c.Logger, slog.Default()), clock: c.clock,
		build: builder{host: host, ambiguous: len(c.Directories) > 1, allEvents: c.Events},
	}
	cfg.Report = p.notice
	if len(c.Sinks) > 0 {
		cfg.Handler.Events = (&feeder{sinks: c.Sinks, now: c.clock}).tap
	}
	if err = errors.Join(err, invalid); err == nil {
		p.host, err = engine.New(cfg)
	}
	if err == nil {
		err = p.host.Start(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read NIXL's rings: %w", err)
	}
	return p, nil
}

// Err returns the error that currently prevents the Producer from reading rings, or nil.
// It returns an error if the Producer is closed, if a directory can't be read, or if
// there are rings and none of them can be opened. It never blocks, so use it for health
// checks.
func (p *Producer) Err() error {
	switch {
	case p == nil:
		return nil
	case p.closed.Load():
		return errors.New("read NIXL's rings: the producer is closed")
	}
	return p.host.State().Err()
}

// closeTimeout bounds how long Close waits for file systems.
const closeTimeout = 10 * time.Second

// Close discovers and drains rings once more and closes them. Later collections return
// the final totals, so the last export is complete whether the MeterProvider is shut
// down before or after Close. If a file system hangs, Close returns an error after 10
// seconds and leaves its rings open. Further calls do nothing.
func (p *Producer) Close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var err error
	p.last, err = p.collect(ctx, true)
	if err = errors.Join(err, p.host.Stop(ctx)); err != nil {
		return fmt.Errorf("read NIXL's rings: %w", err)
	}
	return nil
}

// Produce drains the rings and returns the totals of all agents, and after Close the
// final ones. If draining blocks, for example because a disk doesn't respond, it passes
// an error to OpenTelemetry's error handler and returns nothing when ctx is done or
// earlier. The error is always nil, because the SDK would then export nothing, not even
// the metrics of other instruments.
func (p *Producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	if p == nil {
		return nil, nil
	}
	metrics, err := p.produce(ctx)
	if err != nil { // without the lock, because the handler may close the Producer
		otel.Handle(fmt.Errorf("read NIXL's rings: totals can't be collected; they are cumulative, so the next collection includes them: %w", err))
	}
	return metrics, nil
}

func (p *Producer) produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return p.last, nil
	}
	return p.collect(ctx, false)
}

func (p *Producer) collect(ctx context.Context, last bool) ([]metricdata.ScopeMetrics, error) {
	b := p.build
	b.now, b.data = p.clock(), make(map[string]metricdata.Aggregation)
	c, err := p.host.Collect(ctx, last)
	if err != nil {
		return nil, err
	}
	for i := range c.Snapshots {
		b.agent(&c.Snapshots[i])
	}
	p.host.Delivered(c) // the SDK doesn't report whether the export succeeds
	metrics := b.metrics()
	if len(metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: semconv.ScopeName, Version: semconv.Version, SchemaURL: semconv.SchemaURL},
		Metrics: metrics,
	}}, nil
}

// notice logs a notice of package engine.
func (p *Producer) notice(n notice.Notice) {
	var args []any
	if n.Path != "" {
		args = append(args, "path", n.Path)
	}
	if n.Err != nil {
		args = append(args, "error", n.Err)
	}
	p.log.Log(context.Background(), n.Level, n.Text, args...)
}
