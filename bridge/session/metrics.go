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

// pointLimit limits the number of kinds of packets whose points are stored. Packets
// beyond it take longer to record. The number of series is limited by the MeterProvider.
const pointLimit = 8192

// kind identifies the packets with the same points.
type kind struct {
	device, operation, worker, expert, target, errorType string
	layer                                                int
}

// points holds what packets of one kind have in common: names that are valid in the CSV
// and in OTLP, and the options that select their data points. It is created once,
// because creating the options costs more than using them.
type points struct {
	device, operation, worker string

	duration, memory []metric.RecordOption
	packets          []metric.AddOption
	expert           []metric.AddOption // nil if the packets have no expert
	fallback         []metric.AddOption // nil if the packets ran on the requested device
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
	with := func(attrs ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attrs...))
	}
	device := attribute.String(semconv.DeviceName, n.device)
	operation := attribute.String(semconv.Operation, n.operation)
	layer := attribute.Int(semconv.Layer, k.layer)

	durations := []attribute.KeyValue{device, operation}
	packets := []attribute.KeyValue{device, attribute.String(semconv.Worker, n.worker)}
	if k.errorType != "" {
		errorType := attribute.String(semconv.ErrorType, clean(k.errorType))
		durations, packets = append(durations, errorType), append(packets, errorType)
	}
	n.duration = []metric.RecordOption{with(durations...)}
	n.packets = []metric.AddOption{with(packets...)}
	n.memory = []metric.RecordOption{with(device)}

	selection := []attribute.KeyValue{operation, layer}
	if k.expert != "" {
		selection = append(selection, attribute.String(semconv.Expert, clean(k.expert)))
	}
	if k.expert != "" || isExpert(n.operation) {
		n.expert = []metric.AddOption{with(selection...)}
	}
	if k.target != "" && k.target != auto && k.target != k.device {
		n.fallback = []metric.AddOption{with(device, attribute.String(semconv.DeviceRequestedName, clean(k.target)))}
	}
	return n
}

// record measures one packet.
func (in *instruments) record(ctx context.Context, to *points, p *Packet) {
	in.duration.Record(ctx, p.Duration.Seconds(), to.duration...)
	in.packets.Add(ctx, 1, to.packets...)
	if p.Memory > 0 {
		in.memory.Record(ctx, float64(p.Memory), to.memory...)
	}
	if to.expert != nil {
		in.experts.Add(ctx, 1, to.expert...)
	}
	if to.fallback != nil {
		in.fallbacks.Add(ctx, 1, to.fallback...)
	}
}

// addTo returns the option that selects a counter's data point.
func addTo(attr attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attr))}
}
