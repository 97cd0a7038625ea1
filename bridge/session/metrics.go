package session

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// ScopeName is the name of the instrumentation scope of a session's metrics.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge/session"

// instruments are the metrics of the catalogue that a session emits.
type instruments struct {
	duration  metric.Float64Histogram
	packets   metric.Int64Counter
	memory    metric.Float64Histogram
	fallbacks metric.Int64Counter
	experts   metric.Int64Counter
	tokens    metric.Int64Counter

	prompt, generated []metric.AddOption
}

// newInstruments makes the instruments. One that the provider refuses is
// replaced by one that does nothing, so that a session works in any case.
func newInstruments(p metric.MeterProvider) (*instruments, error) {
	meter := p.Meter(ScopeName)
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
		duration:  histogram(semconv.PacketDuration, semconv.DurationBounds()),
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

// series are the data points that a packet goes to, as the options that
// select them, made once since making them costs more than using them.
type series struct {
	duration []metric.RecordOption
	packets  []metric.AddOption
	memory   []metric.RecordOption
	experts  []metric.AddOption // nil for what is no expert's
}

// record measures one packet.
func (in *instruments) record(s *series, took time.Duration, memory int64) {
	ctx := context.Background()
	in.duration.Record(ctx, took.Seconds(), s.duration...)
	in.packets.Add(ctx, 1, s.packets...)
	if memory > 0 {
		in.memory.Record(ctx, float64(memory), s.memory...)
	}
	if s.experts != nil {
		in.experts.Add(ctx, 1, s.experts...)
	}
}

// past is the attribute of the point that stands for all series past a limit.
var past = attribute.Bool(semconv.MetricOverflow, true)

// addTo is the option list of a counter's data point.
func addTo(attrs ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

// recordIn is the option list of a histogram's data point.
func recordIn(attrs ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}
