// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math/bits"
	"time"
)

// Slow defines when transfers are slow: if they meet any of the conditions. A limit of
// 0 disables a condition.
type Slow struct {
	// Duration is the time above which a transfer is slow.
	Duration time.Duration
	// MinThroughput is the throughput in bytes per second below which a transfer of
	// at least [MinSize] bytes is slow.
	MinThroughput uint64
}

// MinSize is the size in bytes from which on a transfer's throughput is compared: that of
// small transfers only shows their latency.
const MinSize = 1 << 20

// The causes, which are the receiver's keys of the conditions. If both apply, the first is reported.
const (
	SlowDuration   = "slow_transfer"
	SlowThroughput = "min_throughput"
)

// Check sets the cause of a transfer, and reports whether it is slow.
func (s *Slow) Check(t *Transfer) bool {
	t.Cause = ""
	switch {
	case s.Duration > 0 && t.Duration > uint64(s.Duration.Microseconds()):
		t.Cause = SlowDuration
	case t.Bytes >= MinSize && below(t.Bytes, t.Duration, s.MinThroughput):
		t.Cause = SlowThroughput
	}
	return t.Cause != ""
}

// below reports whether [semconv.Throughput] of the arguments is less than least,
// without a division.
func below(bytes, micros, least uint64) bool {
	hi, lo := bits.Mul64(bytes, microsPerSecond)
	leastHi, leastLo := bits.Mul64(least, max(micros, 1))
	return hi < leastHi || hi == leastHi && lo < leastLo
}
