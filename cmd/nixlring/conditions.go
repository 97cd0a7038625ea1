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
}

const defaultSlowTransfer = time.Second

// register adds the flags to a command, which does verb with slow transfers.
func (c *slowConditions) register(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	flags.DurationVar(&c.slowTransfer, "slow-transfer", defaultSlowTransfer, verb+" transfers that took longer than this; 0 for no limit")
	flags.Float64Var(&c.minThroughput, "min-throughput", 0, verb+" transfers of 1 MiB or more with fewer `BYTES` per second; 0 for no limit")
}

// check rejects invalid flags.
func (c *slowConditions) check() error {
	switch {
	case c.slowTransfer < 0:
		return usagef("--slow-transfer %v: must be 0 or more", c.slowTransfer)
	case !(c.minThroughput >= 0 && c.minThroughput <= math.MaxInt64):
		return usagef("--min-throughput %v: must be 0 or more", c.minThroughput)
	}
	return nil
}

// conditions returns what makes a transfer slow.
func (c *slowConditions) conditions() tally.Slow {
	return tally.Slow{Duration: c.slowTransfer, MinThroughput: uint64(math.Ceil(c.minThroughput))}
}
