// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// LogsConfig configures the log, which the receiver writes only if a logs pipeline
// includes it. A transfer is slow if it meets any of the conditions. A limit of 0
// disables its condition.
type LogsConfig struct {
	// SlowTransfer is the duration that a slow transfer exceeds.
	SlowTransfer time.Duration `mapstructure:"slow_transfer"`
	// MinThroughput is the throughput, in bytes per second, that a slow transfer of
	// at least MinSize bytes doesn't reach.
	MinThroughput float64 `mapstructure:"min_throughput"`
	MinSize       int64   `mapstructure:"min_size"`
	// P99Factor times the 99th percentile of the agent's transfers is a duration that
	// a slow transfer exceeds.
	P99Factor float64 `mapstructure:"p99_factor"`

	// Errors reports whether errors are logged, too.
	Errors bool `mapstructure:"errors"`

	// Rate limits the records of each agent per second, and Burst those at once.
	Rate  float64 `mapstructure:"rate"`
	Burst int     `mapstructure:"burst"`
}

const (
	defaultSlowTransfer = time.Second
	defaultMinSize      = 1 << 20
	defaultLogsRate     = 10
	defaultLogsBurst    = 100
)

func defaultLogsConfig() LogsConfig {
	return LogsConfig{
		SlowTransfer: defaultSlowTransfer,
		MinSize:      defaultMinSize,
		Errors:       true,
		Rate:         defaultLogsRate,
		Burst:        defaultLogsBurst,
	}
}

// slow returns the conditions in the units of the ring.
func (c *LogsConfig) slow() tally.Slow {
	return tally.Slow{
		Duration:      c.SlowTransfer,
		MinThroughput: uint64(math.Ceil(c.MinThroughput)),
		MinSize:       uint64(c.MinSize),
		P99Factor:     c.P99Factor,
	}
}

func (c *Config) checkLogs() error {
	var errs faults
	l := &c.Logs
	if l.SlowTransfer < 0 || l.SlowTransfer > 0 && l.SlowTransfer < time.Microsecond {
		errs.add("logs: slow_transfer: %v is too short: use 0s for no limit, or at least 1µs, such as %v", l.SlowTransfer, defaultSlowTransfer)
	}
	if !(l.MinThroughput >= 0 && l.MinThroughput <= math.MaxInt64) {
		errs.add("logs: min_throughput: %v is not a throughput: use 0 for no limit, or bytes per second, such as 1e9", l.MinThroughput)
	}
	switch {
	case l.MinSize < 0:
		errs.add("logs: min_size: %d is negative: use 0 for transfers of all sizes, or bytes, such as %d", l.MinSize, defaultMinSize)
	case l.MinSize != defaultMinSize && l.MinThroughput == 0:
		errs.add("logs: min_size: %d needs min_throughput, which isn't set: remove min_size, or set min_throughput: 1e9, for example", l.MinSize)
	}
	switch {
	case l.P99Factor != 0 && !(l.P99Factor >= 1 && l.P99Factor <= math.MaxInt32):
		errs.add("logs: p99_factor: %v is not a factor: use 0 for no limit, or at least 1, such as 10", l.P99Factor)
	case l.P99Factor != 0 && c.Histograms.Duration.Kind == tally.NoHistogram:
		errs.add("logs: p99_factor needs the histogram of durations, but histograms::duration::kind is none: remove p99_factor, or set another kind")
	}
	if !(l.Rate > 0 && l.Rate <= math.MaxInt32) {
		errs.add("logs: rate: %v is not a rate: use records per second, more than 0, such as %d", l.Rate, defaultLogsRate)
	}
	if l.Burst < 1 {
		errs.add("logs: burst: %d must be 1 or more", l.Burst)
	}
	return errors.Join(errs...)
}
