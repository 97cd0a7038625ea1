// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"strings"

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

	prompt, generated scope.Point
}

func newInstruments(m scope.Meter) *instruments {
	return &instruments{
		duration:  m.Histogram(semconv.PacketDuration),
		packets:   m.Counter(semconv.Packets),
		memory:    m.Histogram(semconv.PacketMemory),
		fallbacks: m.Counter(semconv.PacketFallbacks),
		experts:   m.Counter(semconv.ExpertSelections),
		tokens:    m.Counter(semconv.Tokens),

		prompt:    scope.NewPoint(attribute.String(semconv.TokenType, semconv.TokenPrompt)),
		generated: scope.NewPoint(attribute.String(semconv.TokenType, semconv.TokenGenerated)),
	}
}

// pointLimit limits the number of kinds of packets whose points are stored. Packets
// beyond it take longer to record. The number of series is limited by the MeterProvider.
const pointLimit = 8192

// kind identifies the packets with the same points.
type kind struct {
	device, operation, worker, expert, target, errorType string
	layer                                                int
}

// points holds what packets of one kind have in common: names that are valid in the CSV
// and in OTLP, and their data points. It is created once, because creating the attributes costs
// more than using them.
type points struct {
	device, operation, worker string
	selection                 string // "" if the packets don't count as one

	duration, packets, memory scope.Point
	expert, fallback          scope.Point // of counters; empty if the packets don't count
}

// pointsOf returns the points of a packet. It is not safe for concurrent use.
func (s *Session) pointsOf(p *Packet, errorType string) *points {
	k := kind{p.Device, p.Operation, p.Worker, p.Expert, p.DeviceTarget, errorType, p.Layer}
	if known, ok := s.points[k]; ok {
		return known
	}
	// Clone the strings, because they may be small parts of large ones.
	for _, name := range []*string{&k.device, &k.operation, &k.worker, &k.expert, &k.target, &k.errorType} {
		*name = strings.Clone(*name)
	}
	created := newPoints(k)
	if len(s.points) < pointLimit {
		s.points[k] = created
	}
	return created
}

func newPoints(k kind) *points {
	n := &points{device: clean(k.device), operation: clean(k.operation), worker: clean(k.worker)}
	if n.worker == "" {
		n.worker = worker(n.operation, n.device, k.layer)
	}
	device := attribute.String(semconv.DeviceName, n.device)
	operation := attribute.String(semconv.Operation, n.operation)
	durations := []attribute.KeyValue{device, operation}
	packets := []attribute.KeyValue{device, attribute.String(semconv.Worker, n.worker)}
	if k.errorType != "" {
		errorType := attribute.String(semconv.ErrorType, clean(k.errorType))
		durations, packets = append(durations, errorType), append(packets, errorType)
	}
	n.duration, n.packets, n.memory = scope.NewPoint(durations...), scope.NewPoint(packets...), scope.NewPoint(device)

	expert := clean(k.expert)
	if n.selection = selection(n.operation, expert, k.layer); n.selection != "" {
		selected := []attribute.KeyValue{operation, attribute.Int(semconv.Layer, k.layer)}
		if expert != "" {
			selected = append(selected, attribute.String(semconv.Expert, expert))
		}
		n.expert = scope.NewPoint(selected...)
	}
	if k.target != "" && k.target != auto && k.target != k.device {
		n.fallback = scope.NewPoint(device, attribute.String(semconv.DeviceRequestedName, clean(k.target)))
	}
	return n
}

// record measures one packet.
func (in *instruments) record(ctx context.Context, to *points, p *Packet) {
	in.duration.Record(ctx, p.Duration.Seconds(), to.duration.Record...)
	in.packets.Add(ctx, 1, to.packets.Add...)
	if p.Memory > 0 {
		in.memory.Record(ctx, float64(p.Memory), to.memory.Record...)
	}
	if to.expert.Add != nil {
		in.experts.Add(ctx, 1, to.expert.Add...)
	}
	if to.fallback.Add != nil {
		in.fallbacks.Add(ctx, 1, to.fallback.Add...)
	}
}
