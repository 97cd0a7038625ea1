// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// DefaultDir is the default directory of sessions.
const DefaultDir = "telemetry"

// Option configures a [Session].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	name            string
	provider        metric.MeterProvider
	clock           func() time.Time
	layerOnDuration bool
	create          func(path string) (file, error)
}

func newConfig(opts []Option) config {
	c := config{clock: time.Now, create: createFile}
	for _, o := range opts {
		c = o.apply(c)
	}
	if c.provider == nil {
		c.provider = otel.GetMeterProvider()
	}
	return c
}

// WithName names the session and its files. The name must not contain a path
// separator. The default is the local time, as in
// session_2025-11-17_00-04-29.
func WithName(name string) Option {
	return optionFunc(func(c config) config {
		c.name = name
		return c
	})
}

// WithMeterProvider sets the MeterProvider that the metrics go to. The default
// is the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		c.provider = p
		return c
	})
}

// WithClock sets the clock. The default is [time.Now].
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		if now != nil {
			c.clock = now
		}
		return c
	})
}

// WithLayerOnDuration adds the attribute splitinfer.layer to
// splitinfer.packet.duration. This multiplies the number of its series by the
// number of layers, so it is off by default.
func WithLayerOnDuration() Option {
	return optionFunc(func(c config) config {
		c.layerOnDuration = true
		return c
	})
}
