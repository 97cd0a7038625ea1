// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// LogsConfig says which transfers are logged, if a logs pipeline has the receiver.
// A transfer is slow if it meets any of the conditions; a limit of 0 turns its
// condition off.
type LogsConfig struct {
	// SlowTransfer is a time that slow transfers exceed.
	SlowTransfer time.Duration `mapstructure:"slow_transfer"`
	// MinThroughput, in bytes per second, is one that slow transfers of at least
	// MinSize bytes don't reach.
	MinThroughput float64 `mapstructure:"min_throughput"`
	MinSize       int64   `mapstructure:"min_size"`
	// P99Factor makes transfers slow that take more than so many times the agent's
	// own 99th percentile.
	P99Factor float64 `mapstructure:"p99_factor"`

	// Errors has each error logged, too.
	Errors bool `mapstructure:"errors"`

	// Rate and Burst limit the records of each agent: per second, and at once.
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
		errs.add("logs: slow_transfer: %v can't be measured: write 0s for no limit, or 1µs or more, such as %v", l.SlowTransfer, defaultSlowTransfer)
	}
	if !(l.MinThroughput >= 0 && l.MinThroughput <= math.MaxInt64) {
		errs.add("logs: min_throughput: %v is not a throughput: write 0 for no limit, or bytes per second, such as 1e9", l.MinThroughput)
	}
	switch {
	case l.MinSize < 0:
		errs.add("logs: min_size: %d is negative: write 0 for transfers of all sizes, or bytes, such as %d", l.MinSize, defaultMinSize)
	case l.MinSize != defaultMinSize && l.MinThroughput == 0:
		errs.add("logs: min_size: %d is for min_throughput, which isn't set: leave it out, or write min_throughput: 1e9, for example", l.MinSize)
	}
	switch {
	case l.P99Factor != 0 && !(l.P99Factor >= 1 && l.P99Factor <= math.MaxInt32):
		errs.add("logs: p99_factor: %v is not a factor: write 0 for no limit, or 1 or more, such as 10", l.P99Factor)
	case l.P99Factor != 0 && c.Histograms.Duration.Kind == tally.NoHistogram:
		errs.add("logs: p99_factor: it needs the histogram of durations: leave it out, or write another kind than none for histograms::duration")
	}
	if !(l.Rate > 0 && l.Rate <= math.MaxInt32) {
		errs.add("logs: rate: %v is not a rate: write records per second, more than 0, such as %d", l.Rate, defaultLogsRate)
	}
	if l.Burst < 1 {
		errs.add("logs: burst: %d must be 1 or more", l.Burst)
	}
	return errors.Join(errs...)
}
