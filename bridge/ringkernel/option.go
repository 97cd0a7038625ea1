// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// Option configures a [Runtime].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	clock          func() time.Time // nil for the system's
	attributes     []attribute.KeyValue
	derived        bool
	errorType      func(error) string
	gpuUtilization func() (float64, bool)
}

func newConfig(opts []Option) (c config) {
	for _, o := range opts {
		c = o.apply(c)
	}
	return c
}

// WithClock sets the clock for the times of snapshots and messages. The default
// is the system clock.
//
// Reading the system clock takes longer than everything else that
// [Kernel.Received] does. By default, a kernel therefore reads it only for the first
// message within 10 ms, so the time of the last message can be up to 10 ms too early.
// With this option, it reads the clock for every message: WithClock(time.Now) gives
// exact times at the cost of one time.Now per message.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		c.clock = now
		return c
	})
}

// WithAttributes adds attributes to every data point of the Runtime. If several
// Runtimes report to one reader, they must have different attributes or different
// kernel IDs.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return optionFunc(func(c config) config {
		c.attributes = append(slices.Clip(c.attributes), attributes...)
		return c
	})
}

// WithDerivedMetrics also reports ringkernel.throughput and ringkernel.error_rate,
// which backends can compute from the other metrics.
func WithDerivedMetrics() Option {
	return optionFunc(func(c config) config {
		c.derived = true
		return c
	})
}

// WithErrorType sets the function that returns the value of error.type for an error.
// It must return one of a few names, never the error's text. If it returns "", or
// without this option, the value is the result of the error's method
// ErrorType() string, or else the error's Go type.
func WithErrorType(name func(error) string) Option {
	return optionFunc(func(c config) config {
		c.errorType = name
		return c
	})
}

// WithGPUUtilization sets the function that returns the GPU utilization for a
// [Summary], from 0 to 1. It returns ok = false if there is no GPU. It must be safe
// for concurrent use.
func WithGPUUtilization(utilization func() (ratio float64, ok bool)) Option {
	return optionFunc(func(c config) config {
		c.gpuUtilization = utilization
		return c
	})
}
