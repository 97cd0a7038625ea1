package bridge

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// agentInstruments are those of an Agent. The histograms are recorded to, the
// others are read by its callback.
type agentInstruments struct {
	io, requests                         metric.Int64ObservableCounter
	registered, deregistered             metric.Int64ObservableCounter
	errors, events, eventValue, dropped  metric.Int64ObservableCounter
	usage                                metric.Int64ObservableUpDownCounter
	lastSize, lastMemory, eventLastValue metric.Int64ObservableGauge
	lastDuration, lastPost               metric.Float64ObservableGauge
	size, duration, postDuration         metric.Float64Histogram
}

// report makes the instruments and has them observed.
func (a *Agent) report(c *agentConfig) error {
	meter := c.provider.Meter(ScopeName)
	m := maker{meter: meter}
	a.instruments = agentInstruments{
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
	if err := errors.Join(m.errs...); err != nil {
		return err
	}
	var err error
	if a.registration, err = meter.RegisterCallback(a.observe, m.observed...); err != nil {
		return fmt.Errorf("register the callback of the agent's instruments: %w", err)
	}
	return nil
}

func (m *maker) intGauge(s semconv.Metric) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
	m.made(s, i, err)
	return i
}

// observe is the callback of all observable instruments: it runs once for each
// reader's collection. What never occurred isn't reported, but for errors and
// drops, so that an alert can fire on the first.
func (a *Agent) observe(_ context.Context, o metric.Observer) error {
	t := a.totals()
	a.observeTransfers(o, &t)
	a.observeMemory(o, &t)
	i, p := &a.instruments, &a.points
	for s := range a.errors {
		n := a.errors[s].Load()
		o.ObserveInt64(i.errors, n, p.errors[s])
		a.observeEvents(o, ringbuf.TypeErrNotPosted+ringbuf.Type(s), n)
	}
	o.ObserveInt64(i.dropped, a.dropped.sum.Load(), p.agent)
	a.observeEvents(o, ringbuf.TypeEventsDropped, a.dropped.events.Load())
	a.named.observe(o, i)
	return nil
}

func (a *Agent) observeTransfers(o metric.Observer, t *agentTotals) {
	i, p := &a.instruments, &a.points
	var all int64
	for d, n := range t.transfers {
		if n == 0 {
			continue
		}
		all += n
		o.ObserveInt64(i.io, t.bytes[d], p.direction[d])
		o.ObserveInt64(i.requests, n, p.direction[d])
		o.ObserveInt64(i.lastSize, a.last.size[d].Load(), p.direction[d])
		a.observeEvents(o, ringbuf.TypeTxBytes+ringbuf.Type(d), n)
		a.observeEvents(o, ringbuf.TypeTxRequests+ringbuf.Type(d), n)
	}
	if all == 0 {
		return
	}
	o.ObserveFloat64(i.lastDuration, seconds(a.last.duration.Load()), p.agent)
	o.ObserveFloat64(i.lastPost, seconds(a.last.post.Load()), p.agent)
	a.observeEvents(o, ringbuf.TypeXferTime, all)
	a.observeEvents(o, ringbuf.TypeXferPostTime, all)
}

func (a *Agent) observeMemory(o metric.Observer, t *agentTotals) {
	i, p := &a.instruments, &a.points
	for op, counter := range [memoryOperations]metric.Int64ObservableCounter{i.registered, i.deregistered} {
		m := t.memory[op]
		if m.events == 0 {
			continue
		}
		o.ObserveInt64(counter, m.sum, p.agent)
		o.ObserveInt64(i.lastMemory, a.last.memory[op].Load(), p.operation[op])
		a.observeEvents(o, ringbuf.TypeMemoryRegistered+ringbuf.Type(op), m.events)
	}
	if t.memory[register].events+t.memory[deregister].events > 0 {
		o.ObserveInt64(i.usage, t.memory[register].sum-t.memory[deregister].sum, p.agent)
	}
}

func (a *Agent) observeEvents(o metric.Observer, t ringbuf.Type, n int64) {
	if n > 0 {
		o.ObserveInt64(a.instruments.events, n, a.points.events[t])
	}
}
