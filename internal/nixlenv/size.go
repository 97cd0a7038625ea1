// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlenv

import (
	"math/bits"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ValidBufferSize says whether a ring can have so many slots.
func ValidBufferSize(n int) bool {
	return n >= 2 && n <= ringbuf.MaxCapacity && bits.OnesCount(uint(n)) == 1
}

// EnoughSlots returns the [BufferSize] with which a burst that filled a ring of
// some slots leaves it at most half full. more is how many events are known not to
// have fitted. As a full ring doesn't show the size of the burst, it is taken to be
// at least twice the ring's.
func EnoughSlots(capacity int, more uint64) int {
	return SlotsFor(uint64(capacity) + min(max(more, uint64(capacity)), ringbuf.MaxCapacity))
}

// SlotsFor returns the [BufferSize] that a burst leaves at most half full.
func SlotsFor(burst uint64) int {
	burst = min(burst, ringbuf.MaxCapacity)
	return int(min(uint64(1)<<bits.Len64(max(2*burst, 1)-1), ringbuf.MaxCapacity))
}
