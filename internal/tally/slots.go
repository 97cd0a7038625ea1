// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math/bits"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// EnoughSlots returns the number of slots for an agent whose burst has filled its ring, so that
// the next burst fills at most half of it. more is the number of events that are known to
// be dropped. A full ring doesn't show the size of the burst, so the burst is assumed to
// be at least twice as large as the ring.
func EnoughSlots(capacity int, more uint64) int {
	burst := uint64(capacity) + min(max(more, uint64(capacity)), ringbuf.MaxCapacity)
	return int(min(uint64(1)<<bits.Len64(2*burst-1), ringbuf.MaxCapacity))
}
