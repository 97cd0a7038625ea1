// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
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
	meter *scope.Meter

	io, requests, registered, deregistered metric.Int64Counter
	errors, dropped                        metric.Int64Counter
	size, duration, post, throughput       metric.Float64Histogram

	up, usage              metric.Int64ObservableUpDownCounter
	lastSize, lastMemory   metric.Int64ObservableGauge
	lastDuration, lastPost metric.Float64ObservableGauge
}

func newInstruments(provider metric.MeterProvider) instruments {
	m := scope.NewMeter(provider)
	return instruments{
		meter:        m,
		io:           m.Counter(semconv.TransferIO),
		requests:     m.Counter(semconv.TransferRequests),
		registered:   m.Counter(semconv.MemoryRegistered),
		deregistered: m.Counter(semconv.MemoryDeregistered),
		errors:       m.Counter(semconv.Errors),
		dropped:      m.Counter(semconv.TelemetryEventsDropped),
		size:         m.Histogram(semconv.TransferSize),
		duration:     m.Histogram(semconv.TransferDuration),
		post:         m.Histogram(semconv.TransferPostDuration),
		throughput:   m.Histogram(semconv.TransferThroughput),
		up:           m.ObservableUpDownCounter(semconv.AgentUp),
		usage:        m.ObservableUpDownCounter(semconv.MemoryUsage),
		lastSize:     m.ObservableGauge(semconv.TransferLastSize),
		lastMemory:   m.ObservableGauge(semconv.MemoryLastSize),
		lastDuration: m.ObservableFloatGauge(semconv.TransferLastDuration),
		lastPost:     m.ObservableFloatGauge(semconv.TransferLastPostDuration),
	}
}

// register registers the callback of the observable instruments. A collection can call it at
// once, so all that it reads must be set before.
func (i *instruments) register(observe func(metric.Observer)) metric.Registration {
	r := i.meter.Observe(func(_ context.Context, o metric.Observer) error {
		observe(o)
		return nil
	}, i.up, i.usage, i.lastSize, i.lastMemory, i.lastDuration, i.lastPost)
	if err := i.meter.Err(); err != nil { // the agent goes on without them
		otel.Handle(fmt.Errorf("report metrics of an agent: %w", err))
	}
	return r
}
