// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Option configures an [Agent].
type Option func(*config)

type config struct {
	provider metric.MeterProvider // nil for the global one
	sinks    []sink.Sink

	ring        bool
	off         bool // the environment turns the ring off
	dir         string
	capacity    int // of the ring and of the staging buffer
	layout      ringbuf.Layout
	runInterval time.Duration
}

// WithMeterProvider sets the MeterProvider through which the agent reports. The
// default, also for nil, is the global one. It can't be combined with [WithRing].
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.provider = p }
}

// WithRing makes the agent report through a ring, as NIXL agents do, instead of
// through a MeterProvider. The program that reads the ring exports the metrics.
// Without a reader, the ring fills up and further events are dropped.
//
// The ring is a file in dir that is named after the agent. The directory must exist.
// [New] returns an error if a running Go agent writes to it, so give each process its own name,
// such as one with its rank. If dir is empty, it defaults to NIXL_TELEMETRY_DIR, or else to /tmp.
//
// As in NIXL, NIXL_TELEMETRY_ENABLE=n turns the ring off: the agent then records nothing, except
// for sinks. Without the variable, the option itself enables the ring.
//
// Events are staged and pushed to the ring in a batch at the end of each run
// interval. If the staging buffer is full, events are dropped, and the ring reports them as
// nixl.telemetry.events.dropped. The events of a transfer are dropped together. See
// [Agent.RingTelemetry].
func WithRing(dir string) Option {
	return func(c *config) { c.ring, c.dir = true, dir }
}

// WithLayout sets the layout of the ring. The default is [ringbuf.V4], that of NIXL 1.4. Only
// [ringbuf.V1] carries the events of [Agent.Event]; its readers can't distinguish dropped
// events from them.
func WithLayout(l ringbuf.Layout) Option {
	return func(c *config) { c.layout = l }
}

// WithCapacity sets the number of slots of the ring: a power of two from 2 to
// [ringbuf.MaxCapacity]. It is also the number of events that can be staged for the
// ring and the sinks within a run interval. The default is
// NIXL_TELEMETRY_BUFFER_SIZE, or else 4096.
func WithCapacity(slots int) Option {
	return func(c *config) { c.capacity = slots }
}

// WithRunInterval sets the time between two flushes to the ring and the sinks, at
// least 1 ms. The default is NIXL_TELEMETRY_RUN_INTERVAL (in ms), or else 100 ms.
func WithRunInterval(d time.Duration) Option {
	return func(c *config) { c.runInterval = d }
}

// WithSinks also passes each event to sinks, at the end of each run interval.
// Sinks must not be nil and must not call the agent's Flush or Close. Close them
// after the agent.
func WithSinks(sinks ...sink.Sink) Option {
	return func(c *config) { c.sinks = append(c.sinks, sinks...) }
}

func newConfig(opts []Option) (config, error) {
	c := config{layout: ringbuf.V4}
	for _, o := range opts {
		o(&c)
	}
	switch {
	case slices.Contains(c.sinks, nil):
		return c, errors.New("a sink is nil")
	case c.ring && c.provider != nil:
		return c, errors.New("WithRing and WithMeterProvider can't be combined, because a backend would count every event twice; " +
			"use WithRing if a Collector or bridge/rings reads the ring, otherwise WithMeterProvider")
	}
	if env := process.Env(os.LookupEnv); c.ring && os.Getenv(process.EnvEnable) != "" && !env.Enabled() {
		c.ring, c.off = false, true
	}
	if c.ring || len(c.sinks) > 0 {
		return c, c.setRingDefaults()
	}
	return c, nil
}

func (c *config) setRingDefaults() error {
	env := process.Env(os.LookupEnv)
	var errs [2]error
	if c.dir == "" {
		c.dir = env.Dir()
	}
	if c.capacity == 0 {
		c.capacity, errs[0] = env.BufferSize()
	} else if !process.ValidBufferSize(c.capacity) {
		errs[0] = fmt.Errorf("capacity is %d: it must be a power of two from 2 to %d", c.capacity, ringbuf.MaxCapacity)
	}
	if c.runInterval == 0 {
		c.runInterval, errs[1] = env.RunInterval()
	} else if c.runInterval < time.Millisecond {
		errs[1] = fmt.Errorf("run interval is %v: it must be 1ms or more", c.runInterval)
	}
	return errors.Join(errs[:]...)
}
