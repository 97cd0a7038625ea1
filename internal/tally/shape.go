// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"errors"
	"fmt"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// HistogramKind is how a distribution is kept.
type HistogramKind string

// The kinds of histograms.
const (
	Explicit    HistogramKind = "explicit"
	Exponential HistogramKind = "exponential"
	NoHistogram HistogramKind = "none" // only its count, sum, and last value
)

// HistogramConfig says how one kind of distribution is kept. The zero value
// asks for the defaults of the catalog.
type HistogramConfig struct {
	Kind    HistogramKind // Explicit where empty
	Bounds  []float64     // explicit: upper bounds in the metric's unit; the catalog's where empty
	MaxSize int           // exponential: buckets at most, 2 to 4096; 160 where 0
}

// Config says how the totals of agents are kept.
type Config struct {
	Duration   HistogramConfig // bounds in seconds
	Size       HistogramConfig // bounds in bytes
	Throughput HistogramConfig // bounds in bytes per second
	// SizeClasses also keeps the times of transfers apart by the class of their
	// size; see [Totals.Durations].
	SizeClasses bool
	// MaxNames is how many event names beyond NIXL's own are kept apart for
	// each agent. 200 where 0.
	MaxNames int
}

// Defaults of a [Config].
const (
	DefaultMaxNames = 200
	DefaultMaxSize  = 160 // the SDK's
)

// Shape is what the totals of all agents have in common: a checked [Config].
type Shape struct {
	duration, size, throughput *scale
	sizeClasses                bool
	maxNames                   int
}

// NewShape checks a configuration. The error names the field.
func NewShape(c Config) (*Shape, error) {
	if c.MaxNames == 0 {
		c.MaxNames = DefaultMaxNames
	}
	duration, errDuration := newScale(c.Duration, microsPerSecond, semconv.DurationBounds())
	size, errSize := newScale(c.Size, 1, semconv.SizeBounds())
	throughput, errThroughput := newScale(c.Throughput, 1, semconv.ThroughputBounds())
	var errNames error
	if c.MaxNames < 0 {
		errNames = fmt.Errorf("max names is %d: it must not be negative", c.MaxNames)
	}
	err := errors.Join(wrap("duration", errDuration), wrap("size", errSize), wrap("throughput", errThroughput), errNames)
	if err != nil {
		return nil, err
	}
	return &Shape{duration: duration, size: size, throughput: throughput, sizeClasses: c.SizeClasses, maxNames: c.MaxNames}, nil
}

func wrap(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

const microsPerSecond = 1_000_000
