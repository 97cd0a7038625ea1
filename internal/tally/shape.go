// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"errors"
	"fmt"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// HistogramKind determines the buckets of a distribution.
type HistogramKind string

// The kinds of histograms.
const (
	Explicit    HistogramKind = "explicit"
	Exponential HistogramKind = "exponential"
	NoHistogram HistogramKind = "none" // only count, sum, and last value
)

// HistogramConfig configures a distribution. The zero value selects the defaults of the
// catalog.
type HistogramConfig struct {
	Kind    HistogramKind `mapstructure:"kind"`   // default: Explicit
	Bounds  []float64     `mapstructure:"bounds"` // explicit: upper bounds in the metric's unit; default: the catalog's
	MaxSize int           `mapstructure:"-"`      // exponential: maximum number of buckets, 2 to 4096; default: 160
}

// Config configures the totals of agents.
type Config struct {
	Duration   HistogramConfig `mapstructure:"duration"`   // bounds in seconds
	Size       HistogramConfig `mapstructure:"size"`       // bounds in bytes
	Throughput HistogramConfig `mapstructure:"throughput"` // bounds in bytes per second
	// MaxNames limits the number of series for names that aren't in the catalog,
	// per agent. The default is 64.
	MaxNames int `mapstructure:"-"`
}

// Defaults of a [Config].
const (
	defaultMaxNames = 64
	defaultMaxSize  = 160 // same as in OpenTelemetry's SDKs
)

// Shape is a validated [Config], shared by the totals of all agents.
type Shape struct {
	duration, size, throughput *scale
	maxNames                   int
}

// NewShape validates a configuration. The error names every invalid field.
func NewShape(c Config) (*Shape, error) {
	if c.MaxNames == 0 {
		c.MaxNames = defaultMaxNames
	}
	duration, errDuration := newScale(c.Duration, microsPerSecond, semconv.TransferDuration.Bounds)
	size, errSize := newScale(c.Size, 1, semconv.TransferSize.Bounds)
	throughput, errThroughput := newScale(c.Throughput, 1, semconv.TransferThroughput.Bounds)
	var errNames error
	if c.MaxNames < 0 {
		errNames = fmt.Errorf("max names is %d: it must not be negative", c.MaxNames)
	}
	err := errors.Join(wrap("duration", errDuration), wrap("size", errSize), wrap("throughput", errThroughput), errNames)
	if err != nil {
		return nil, err
	}
	return &Shape{duration: duration, size: size, throughput: throughput, maxNames: c.MaxNames}, nil
}

// hash returns a hash of the histogram configuration.
func (s *Shape) hash() uint64 {
	return s.size.hash ^ 31*s.duration.hash ^ 31*31*s.throughput.hash
}

func wrap(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

const microsPerSecond = 1_000_000
