// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

const (
	// firstWait is the time between the first two drains of a ring. It is short, because an agent
	// may flush more often than configured.
	firstWait = 5 * time.Millisecond
	// leastWait is the shortest time between two drains of a ring.
	leastWait = time.Millisecond
)

// nextWait returns the time until the next drain of a ring, given the time before the last one
// and the number of events that it found. It doubles while a drain finds less than an eighth of
// the ring, and is a quarter as long when one finds more than a quarter. It is at most longest.
func nextWait(wait time.Duration, events, capacity int, longest time.Duration) time.Duration {
	switch {
	case 8*events < capacity:
		wait *= 2
	case 4*events > capacity:
		wait /= 4
	}
	return max(min(wait, longest), leastWait)
}

// longestWait returns the longest wait: half of the configured run interval, so that an observer sees each
// flush. A consumer has less time: a flush that fills the ring must be counted, stored and committed
// before the next one.
func (c *Config) longestWait() time.Duration {
	if c.Observe {
		return c.RunInterval / 2
	}
	return c.RunInterval / 4
}
