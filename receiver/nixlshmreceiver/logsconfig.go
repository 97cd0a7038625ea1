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
	// at least [tally.MinSize] bytes doesn't reach.
	MinThroughput float64 `mapstructure:"min_throughput"`

	// Errors reports whether errors are logged, too.
	Errors bool `mapstructure:"errors"`

	// Rate limits the records of each agent per second, on average.
	Rate float64 `mapstructure:"rate"`
}

const (
	defaultSlowTransfer = time.Second
	defaultLogsRate     = 10
)

func defaultLogsConfig() LogsConfig {
	return LogsConfig{SlowTransfer: defaultSlowTransfer, Errors: true, Rate: defaultLogsRate}
}

// burst returns the number of records that an agent may log at once: those of ten seconds.
func (c *LogsConfig) burst() int { return int(math.Ceil(min(10*c.Rate, math.MaxInt32))) }

// slow returns the conditions in the units of the ring.
func (c *LogsConfig) slow() tally.Slow {
	return tally.Slow{Duration: c.SlowTransfer, MinThroughput: uint64(math.Ceil(c.MinThroughput))}
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
	if !(l.Rate > 0 && l.Rate <= math.MaxInt32) {
		errs.add("logs: rate: %v is not a rate: use records per second, more than 0, such as %d", l.Rate, defaultLogsRate)
	}
	return errors.Join(errs...)
}
