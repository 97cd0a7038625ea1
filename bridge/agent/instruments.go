// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// instruments are the SDK's instruments of an agent. Those of agents with the same
// MeterProvider share their series in the SDK.
//
// Counters and histograms are synchronous, because the SDK keeps their values when an
// agent is closed and created again. Gauges and up-down counters are observable,
// because their series must end, and because storing a last value is cheaper than
// recording it.
type instruments struct {
	io, requests, registered, deregistered metric.Int64Counter
	errors, dropped, eventValue            metric.Int64Counter
	size, duration, post, throughput       metric.Float64Histogram
	eventLast                              metric.Int64Gauge

	up, usage              metric.Int64ObservableUpDownCounter
	lastSize, lastMemory   metric.Int64ObservableGauge
	lastDuration, lastPost metric.Float64ObservableGauge
}

// register creates the instruments, and then registers the callback of the observable ones.
// A collection can call it at once, so all that it reads must be set before.
func (c *core) register(provider metric.MeterProvider) {
	m := scope.NewMeter(provider)
	i := &instruments{
		io:           m.Counter(semconv.TransferIO),
		requests:     m.Counter(semconv.TransferRequests),
		registered:   m.Counter(semconv.MemoryRegistered),
		deregistered: m.Counter(semconv.MemoryDeregistered),
		errors:       m.Counter(semconv.Errors),
		dropped:      m.Counter(semconv.TelemetryEventsDropped),
		eventValue:   m.Counter(semconv.EventValue),
		size:         m.Histogram(semconv.TransferSize),
		duration:     m.Histogram(semconv.TransferDuration),
		post:         m.Histogram(semconv.TransferPostDuration),
		throughput:   m.Histogram(semconv.TransferThroughput),
		eventLast:    m.Gauge(semconv.EventLastValue),
		up:           m.ObservableUpDownCounter(semconv.AgentUp),
		usage:        m.ObservableUpDownCounter(semconv.MemoryUsage),
		lastSize:     m.ObservableGauge(semconv.TransferLastSize),
		lastMemory:   m.ObservableGauge(semconv.MemoryLastSize),
		lastDuration: m.ObservableFloatGauge(semconv.TransferLastDuration),
		lastPost:     m.ObservableFloatGauge(semconv.TransferLastPostDuration),
	}
	c.instruments = i
	c.registration = m.Observe(c.observe, i.up, i.usage, i.lastSize, i.lastMemory, i.lastDuration, i.lastPost)
	if err := m.Err(); err != nil { // the agent goes on without them
		otel.Handle(fmt.Errorf("report metrics of an agent: %w", err))
	}
}
