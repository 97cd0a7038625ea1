// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/uncollected"
	"github.com/nixl-otel/nixl-otel/internal/host"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Producer reads the rings of agents and passes the totals to a reader of the SDK.
// It is safe for concurrent use.
//
// Pass it to only one reader: nixl.telemetry.ring.utilization is the maximum since the
// last collection by any reader. If no reader collects a Producer without sinks within
// 2 minutes, it logs an error.
type Producer struct {
	host *host.Host
	log  *slog.Logger
	now  func() time.Time

	sinks bool // with sinks, a program doesn't need a reader

	mu      sync.Mutex // guards the following fields; held during collections
	state   state
	waiting *uncollected.Timer // for the first collection; nil before Start and with sinks
	labels  labels
	last    []metricdata.ScopeMetrics // the totals at Close
}

var _ sdkmetric.Producer = (*Producer)(nil)

type state uint8

const (
	created state = iota
	started
	closed
)

// New returns a Producer. It opens no files before [Producer.Start]. The error names
// the option or the NIXL environment variable with an invalid value.
func New(opts ...Option) (*Producer, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("read NIXL's rings: %w", err)
	}
	p := &Producer{log: c.log, now: c.host.Now, sinks: len(c.sinks) > 0}
	c.host.Report = p.notice
	if p.sinks {
		f := &feeder{sinks: c.sinks, log: c.log, now: c.host.Now}
		c.host.Tap = f.tap
	}
	if p.host, err = host.New(c.host); err != nil {
		return nil, fmt.Errorf("read NIXL's rings: %w", err)
	}
	if len(c.host.Directories) > 1 {
		p.labels.instance = true
		if p.labels.hostname, err = c.hostname(); err != nil {
			return nil, fmt.Errorf("read NIXL's rings: %w", err)
		}
	}
	return p, nil
}

// Start starts discovering and draining rings. It is not an error if a directory
// doesn't exist yet. Start does nothing if the Producer was already started or closed.
func (p *Producer) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != created {
		return nil
	}
	if err := p.host.Start(nil); err != nil {
		return fmt.Errorf("read NIXL's rings: %w", err)
	}
	p.state = started
	if !p.sinks {
		p.waiting = uncollected.Start("NIXL agents", p.now, func(err error) { p.log.Error("rings are drained, but no metrics are exported", "error", err) })
	}
	return nil
}

// Err returns the error that currently prevents the Producer from reading rings, or nil.
// It returns an error if the Producer isn't started, if it is closed, if a directory
// can't be read, or if there are rings and none of them can be opened. Use it for
// health checks.
func (p *Producer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case created:
		return errors.New("read NIXL's rings: the producer isn't started; call Start")
	case closed:
		return errors.New("read NIXL's rings: the producer is closed")
	case started:
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
	p.mu.Lock()
	defer p.mu.Unlock()
	running := p.state == started
	p.state = closed
	if !running {
		return nil
	}
	p.waiting.Closing()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	p.last = p.collect(ctx, true)
	if err := p.host.Stop(ctx); err != nil {
		return fmt.Errorf("read NIXL's rings: %w", err)
	}
	return nil
}

// Produce drains the rings and returns the totals of all agents. It returns nothing
// before Start, and the final totals after Close. If draining blocks, for example
// because a disk doesn't respond, it logs an error and returns nothing when ctx is done
// or earlier. The error is always nil.
func (p *Producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.Collected()
	switch p.state {
	case started:
		return p.collect(ctx, false), nil
	case closed:
		return p.last, nil
	default:
		return nil, nil
	}
}

func (p *Producer) collect(ctx context.Context, last bool) []metricdata.ScopeMetrics {
	b := newBuilder(&p.labels, p.now())
	c, err := p.host.Collect(ctx, last)
	if err != nil {
		p.log.Error("totals can't be collected; they are cumulative, so the next collection includes them", "error", err)
		return nil
	}
	for i := range c.Snapshots {
		b.agent(&c.Snapshots[i])
	}
	p.host.Delivered(c) // the SDK doesn't report whether the export succeeds
	p.labels.sweep()
	metrics := b.metrics()
	if len(metrics) == 0 {
		return nil
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: semconv.ScopeName, Version: semconv.Version, SchemaURL: semconv.SchemaURL},
		Metrics: metrics,
	}}
}

// notice logs a notice of package host.
func (p *Producer) notice(n notice.Notice) {
	var args []any
	if n.Path != "" {
		args = append(args, "path", n.Path)
	}
	if n.Err != nil {
		args = append(args, "error", n.Err)
	}
	if n.Again > 0 {
		args = append(args, "repeated", n.Again)
	}
	p.log.Log(context.Background(), n.Level, n.Text, args...)
}
