package bridge

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// agentInstruments are those of all agents of a MeterProvider. The histograms
// are recorded to, the others are read by the ledger's callback.
type agentInstruments struct {
	io, requests                         metric.Int64ObservableCounter
	registered, deregistered             metric.Int64ObservableCounter
	errors, events, eventValue, dropped  metric.Int64ObservableCounter
	usage                                metric.Int64ObservableUpDownCounter
	lastSize, lastMemory, eventLastValue metric.Int64ObservableGauge
	lastDuration, lastPost               metric.Float64ObservableGauge
	size, duration, postDuration         metric.Float64Histogram
}

func newAgentInstruments(meter metric.Meter) (agentInstruments, []metric.Observable, error) {
	m := maker{meter: meter}
	i := agentInstruments{
		io:             m.counter(semconv.TransferIO),
		requests:       m.counter(semconv.TransferRequests),
		registered:     m.counter(semconv.MemoryRegistered),
		deregistered:   m.counter(semconv.MemoryDeregistered),
		errors:         m.counter(semconv.Errors),
		events:         m.counter(semconv.Events),
		eventValue:     m.counter(semconv.EventValue),
		dropped:        m.counter(semconv.TelemetryEventsDropped),
		usage:          m.upDownCounter(semconv.MemoryUsage),
		lastSize:       m.intGauge(semconv.TransferLastSize),
		lastMemory:     m.intGauge(semconv.MemoryLastSize),
		eventLastValue: m.intGauge(semconv.EventLastValue),
		lastDuration:   m.gauge(semconv.TransferLastDuration),
		lastPost:       m.gauge(semconv.TransferLastPostDuration),
		size:           m.histogram(semconv.TransferSize, semconv.SizeBounds()),
		duration:       m.histogram(semconv.TransferDuration, semconv.DurationBounds()),
		postDuration:   m.histogram(semconv.TransferPostDuration, semconv.DurationBounds()),
	}
	return i, m.observed, errors.Join(m.errs...)
}

func (m *maker) intGauge(s semconv.Metric) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

// observeLast reports the agent's last values, of what the totals say that it
// counted.
func (a *Agent) observeLast(o metric.Observer, t *agentTotals) {
	i, p := &a.instruments, &a.points
	for d, n := range t.transfers {
		if n > 0 {
			o.ObserveInt64(i.lastSize, a.last.size[d].Load(), p.direction[d])
		}
	}
	if t.transfers != ([directions]int64{}) {
		o.ObserveFloat64(i.lastDuration, seconds(a.last.duration.Load()), p.agent)
		o.ObserveFloat64(i.lastPost, seconds(a.last.post.Load()), p.agent)
	}
	for op, m := range t.memory {
		if m.events > 0 {
			o.ObserveInt64(i.lastMemory, a.last.memory[op].Load(), p.operation[op])
		}
	}
}
