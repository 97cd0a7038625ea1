package agent

import (
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/instrument"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// instruments are those of all agents of a MeterProvider. The histograms
// are recorded to, the others are read by the ledger's callback.
type instruments struct {
	io, requests                         metric.Int64ObservableCounter
	registered, deregistered             metric.Int64ObservableCounter
	errors, events, eventValue, dropped  metric.Int64ObservableCounter
	usage                                metric.Int64ObservableUpDownCounter
	lastSize, lastMemory, eventLastValue metric.Int64ObservableGauge
	lastDuration, lastPost               metric.Float64ObservableGauge
	size, duration, postDuration         metric.Float64Histogram
}

func newInstruments(meter metric.Meter) (instruments, []metric.Observable, error) {
	m := instrument.NewMaker(meter)
	i := instruments{
		io:             m.Counter(semconv.TransferIO),
		requests:       m.Counter(semconv.TransferRequests),
		registered:     m.Counter(semconv.MemoryRegistered),
		deregistered:   m.Counter(semconv.MemoryDeregistered),
		errors:         m.Counter(semconv.Errors),
		events:         m.Counter(semconv.Events),
		eventValue:     m.Counter(semconv.EventValue),
		dropped:        m.Counter(semconv.TelemetryEventsDropped),
		usage:          m.UpDownCounter(semconv.MemoryUsage),
		lastSize:       m.IntGauge(semconv.TransferLastSize),
		lastMemory:     m.IntGauge(semconv.MemoryLastSize),
		eventLastValue: m.IntGauge(semconv.EventLastValue),
		lastDuration:   m.Gauge(semconv.TransferLastDuration),
		lastPost:       m.Gauge(semconv.TransferLastPostDuration),
		size:           m.Histogram(semconv.TransferSize, semconv.SizeBounds()),
		duration:       m.Histogram(semconv.TransferDuration, semconv.DurationBounds()),
		postDuration:   m.Histogram(semconv.TransferPostDuration, semconv.DurationBounds()),
	}
	return i, m.Observed(), m.Err()
}

// observeLast reports the agent's last values, of what the totals say that it
// counted.
func (a *Agent) observeLast(o metric.Observer, t *totals) {
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
