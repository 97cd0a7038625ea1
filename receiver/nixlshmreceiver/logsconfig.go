// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"math"
	"time"
)

// LogsConfig configures the log, which the receiver writes only if a logs pipeline
// includes it.
type LogsConfig struct {
	// SlowTransfer is the duration that a slow transfer exceeds. 0 disables logging
	// slow transfers.
	SlowTransfer time.Duration `mapstructure:"slow_transfer"`

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

func (c *Config) checkLogs() error {
	var errs faults
	l := &c.Logs
	if l.SlowTransfer < 0 || l.SlowTransfer > 0 && l.SlowTransfer < time.Microsecond {
		errs.add("logs: slow_transfer: %v is too short: use 0s for no limit, or at least 1µs, such as %v", l.SlowTransfer, defaultSlowTransfer)
	}
	if !(l.Rate > 0 && l.Rate <= math.MaxInt32) {
		errs.add("logs: rate: %v is not a rate: use records per second, more than 0, such as %d", l.Rate, defaultLogsRate)
	}
	return errors.Join(errs...)
}
