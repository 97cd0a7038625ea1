// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
)

// Option configures an [Agent].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	producer       *Producer
	clock          func() time.Time
	nameInResource bool
	ring           *Ring
	sinks          []sink.Sink
	runInterval    time.Duration
	capacity       int // of the staging buffer
}

// WithProducer makes the agent report through a [Producer], and thus through the
// OpenTelemetry SDK. It can't be combined with [WithRing].
func WithProducer(p *Producer) Option {
	return optionFunc(func(c config) config {
		c.producer = p
		return c
	})
}

// WithNameInResource omits the attribute nixl.agent.name from the data points.
// Use it if the MeterProvider serves only this agent and its resource has the
// attribute; see [ResourceAttributes].
func WithNameInResource() Option {
	return optionFunc(func(c config) config {
		c.nameInResource = true
		return c
	})
}

// WithRing makes the agent report through a ring, as NIXL agents do, instead of
// through a [Producer]. The program that reads the ring exports the metrics.
// Without a reader, the ring fills up and further events are dropped. It can't be
// combined with [WithProducer].
//
// Events are staged and pushed to the ring in a batch at the end of each run
// interval. If the staging buffer is full, events are dropped. With layout V4, the
// ring reports them as nixl.telemetry.events.dropped. The events of a transfer are
// dropped together. See [Agent.RingTelemetry].
func WithRing(r Ring) Option {
	return optionFunc(func(c config) config {
		c.ring = &r
		return c
	})
}

// WithSinks also passes each event to sinks, at the end of each run interval.
// Sinks must not be nil and must not call the agent's Flush, Close or
// RingTelemetry. Close them after the agent.
func WithSinks(sinks ...sink.Sink) Option {
	return optionFunc(func(c config) config {
		c.sinks = append(slices.Clip(c.sinks), sinks...)
		return c
	})
}

// WithClock sets the clock for the times of data points, of exemplars, and of
// events for sinks and for rings of layout V1. The default is time.Now.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		c.clock = now
		return c
	})
}

var (
	errNilSink = errors.New("a sink is nil")
	errTwice   = errors.New("WithRing and WithProducer can't be combined, because a backend would count every event twice; " +
		"use WithRing if a Collector or bridge/rings reads the ring, otherwise WithProducer")
	errNowhere = errors.New("no destination for the telemetry: pass WithProducer, WithRing or WithSinks, or leave the agent nil")
)

func newConfig(opts []Option) (config, error) {
	c := config{clock: time.Now}
	for _, o := range opts {
		c = o.apply(c)
	}
	if c.clock == nil {
		c.clock = time.Now
	}
	switch {
	case slices.Contains(c.sinks, nil):
		return c, errNilSink
	case c.ring != nil && c.producer != nil:
		return c, errTwice
	case c.ring == nil && len(c.sinks) == 0:
		if c.producer == nil {
			return c, errNowhere
		}
		return c, nil
	}
	var ring Ring
	if c.ring != nil {
		ring = *c.ring
	}
	if err := ring.setDefaults(); err != nil {
		return c, err
	}
	if c.ring != nil {
		c.ring = &ring
	}
	c.runInterval, c.capacity = ring.RunInterval, ring.Capacity
	return c, nil
}
