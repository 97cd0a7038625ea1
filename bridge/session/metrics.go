// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// ScopeName is the name of the instrumentation scope of a session's metrics.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge/session"

// instruments holds the instruments of the splitinfer metrics.
type instruments struct {
	duration  metric.Float64Histogram
	packets   metric.Int64Counter
	memory    metric.Float64Histogram
	fallbacks metric.Int64Counter
	experts   metric.Int64Counter
	tokens    metric.Int64Counter

	prompt, generated []metric.AddOption
}

// newInstruments creates the instruments. If the provider rejects an instrument, a
// no-op replaces it, so that the session still works.
func newInstruments(p metric.MeterProvider) (*instruments, error) {
	meter := p.Meter(ScopeName, metric.WithInstrumentationVersion(scope.Version()))
	var errs []error
	counter := func(m semconv.Metric) metric.Int64Counter {
		c, err := meter.Int64Counter(m.Name,
			metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		if err != nil {
			errs = append(errs, err)
			return noop.Int64Counter{}
		}
		return c
	}
	histogram := func(m semconv.Metric, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(m.Name,
			metric.WithUnit(m.Unit), metric.WithDescription(m.Description),
			metric.WithExplicitBucketBoundaries(bounds...))
		if err != nil {
			errs = append(errs, err)
			return noop.Float64Histogram{}
		}
		return h
	}
	in := &instruments{
		duration:  histogram(semconv.PacketDuration, semconv.SplitInferenceDurationBounds()),
		packets:   counter(semconv.Packets),
		memory:    histogram(semconv.PacketMemory, semconv.SizeBounds()),
		fallbacks: counter(semconv.PacketFallbacks),
		experts:   counter(semconv.ExpertSelections),
		tokens:    counter(semconv.Tokens),

		prompt:    addTo(attribute.String(semconv.TokenType, semconv.TokenPrompt)),
		generated: addTo(attribute.String(semconv.TokenType, semconv.TokenGenerated)),
	}
	return in, errors.Join(errs...)
}

// points selects the data points of one packet by precomputed options, because
// creating the options costs more than using them.
type points struct {
	*series
	expert   []metric.AddOption // nil if the packet has no expert
	fallback []metric.AddOption // nil if the packet ran on the requested device
}

// series selects the data points that all packets of a route with the same outcome
// share.
type series struct {
	duration []metric.RecordOption
	packets  []metric.AddOption
	memory   []metric.RecordOption
}

// record measures one packet.
func (in *instruments) record(ctx context.Context, p points, took time.Duration, memory int64) {
	in.duration.Record(ctx, took.Seconds(), p.duration...)
	in.packets.Add(ctx, 1, p.packets...)
	if memory > 0 {
		in.memory.Record(ctx, float64(memory), p.memory...)
	}
	if p.expert != nil {
		in.experts.Add(ctx, 1, p.expert...)
	}
	if p.fallback != nil {
		in.fallbacks.Add(ctx, 1, p.fallback...)
	}
}

// overflow is the attribute of the data point for all packets beyond a limit.
var overflow = attribute.Bool(semconv.MetricOverflow, true)

// addTo returns the options that select a counter's data point.
func addTo(attrs ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

// recordIn returns the options that select a histogram's data point.
func recordIn(attrs ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}
