// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package metrictest

import (
	"sync"
	"time"
)

// Start is the time at which a [Clock] starts.
var Start = time.Date(2025, time.January, 15, 14, 30, 25, 0, time.UTC)

// Clock is a clock that only advances when a test calls Advance.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a Clock at [Start].
func NewClock() *Clock { return &Clock{now: Start} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance advances the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
