package nixlenv

import (
	"math/bits"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ValidBufferSize says whether a ring can have so many slots.
func ValidBufferSize(n int) bool {
	return n >= 2 && n <= ringbuf.MaxCapacity && bits.OnesCount(uint(n)) == 1
}

// EnoughSlots is the [BufferSize] that an agent needs for what it has in one
// run interval. A burst that has filled a ring of some slots had at least as
// many events; more is how many are known not to have fitted.
func EnoughSlots(capacity int, more uint64) int {
	need := uint64(capacity) + min(more, ringbuf.MaxCapacity)
	return int(min(uint64(1)<<bits.Len64(need), ringbuf.MaxCapacity))
}
