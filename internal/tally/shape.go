// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"cmp"
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
	MaxSize int           `mapstructure:"-"`      // exponential: maximum number of buckets; default: 160. Only tests set it
}

// Config configures the totals of agents.
type Config struct {
	Duration   HistogramConfig `mapstructure:"duration"`   // bounds in seconds
	Size       HistogramConfig `mapstructure:"size"`       // bounds in bytes
	Throughput HistogramConfig `mapstructure:"throughput"` // bounds in bytes per second
	// MaxNames limits the number of series for names that aren't in the catalog,
	// per agent. The default is 64. Only tests set it.
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
	duration, errDuration := newScale(c.Duration, microsPerSecond, semconv.TransferDuration.Bounds)
	size, errSize := newScale(c.Size, 1, semconv.TransferSize.Bounds)
	throughput, errThroughput := newScale(c.Throughput, 1, semconv.TransferThroughput.Bounds)
	err := errors.Join(wrap("duration", errDuration), wrap("size", errSize), wrap("throughput", errThroughput))
	if err != nil {
		return nil, err
	}
	return &Shape{duration: duration, size: size, throughput: throughput, maxNames: cmp.Or(c.MaxNames, defaultMaxNames)}, nil
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
