// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// slowConditions are the flags that define when a transfer is slow.
type slowConditions struct {
	slowTransfer  time.Duration
	minThroughput float64
	minSize       uint64
	p99Factor     float64
}

const (
	defaultSlowTransfer = time.Second
	defaultMinSize      = 1 << 20
)

// register adds the flags to a command, which does verb with slow transfers.
func (c *slowConditions) register(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	flags.DurationVar(&c.slowTransfer, "slow-transfer", defaultSlowTransfer, verb+" transfers that took longer than this; 0 for no limit")
	flags.Float64Var(&c.minThroughput, "min-throughput", 0, verb+" transfers with fewer `BYTES` per second; 0 for no limit")
	flags.Uint64Var(&c.minSize, "min-size", defaultMinSize, "minimum size in `BYTES` for --min-throughput to apply")
	flags.Float64Var(&c.p99Factor, "p99-factor", 0, verb+" transfers that took more than `FACTOR` times the agent's p99; 0 for no limit")
}

// check rejects invalid flags.
func (c *slowConditions) check(cmd *cobra.Command) error {
	switch {
	case c.slowTransfer < 0:
		return usagef("--slow-transfer %v: must be 0 or more", c.slowTransfer)
	case !(c.minThroughput >= 0 && c.minThroughput <= math.MaxInt64):
		return usagef("--min-throughput %v: must be 0 or more", c.minThroughput)
	case cmd.Flags().Changed("min-size") && c.minThroughput == 0:
		return usagef("--min-size %d: requires --min-throughput", c.minSize)
	case c.p99Factor != 0 && !(c.p99Factor >= 1 && c.p99Factor <= math.MaxInt32):
		return usagef("--p99-factor %v: must be 0, or 1 or more", c.p99Factor)
	}
	return nil
}

// conditions returns what makes a transfer slow.
func (c *slowConditions) conditions() tally.Slow {
	return tally.Slow{
		Duration: c.slowTransfer, MinThroughput: uint64(math.Ceil(c.minThroughput)), MinSize: c.minSize, P99Factor: c.p99Factor,
	}
}
