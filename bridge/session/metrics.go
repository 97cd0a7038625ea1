// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/semconv"
)

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

// newInstruments creates the instruments. The session works without those that the
// provider rejects.
func newInstruments(p metric.MeterProvider) (*instruments, error) {
	m := scope.NewMeter(p)
	in := &instruments{
		duration:  m.Histogram(semconv.PacketDuration),
		packets:   m.Counter(semconv.Packets),
		memory:    m.Histogram(semconv.PacketMemory),
		fallbacks: m.Counter(semconv.PacketFallbacks),
		experts:   m.Counter(semconv.ExpertSelections),
		tokens:    m.Counter(semconv.Tokens),

		prompt:    addTo(attribute.String(semconv.TokenType, semconv.TokenPrompt)),
		generated: addTo(attribute.String(semconv.TokenType, semconv.TokenGenerated)),
	}
	return in, m.Err()
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

// addTo returns the options that select a counter's data point.
func addTo(attrs ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

// recordIn returns the options that select a histogram's data point.
func recordIn(attrs ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}
