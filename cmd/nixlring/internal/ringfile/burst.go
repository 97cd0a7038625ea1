// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"context"
	"errors"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Burst holds the results of watching a ring.
type Burst struct {
	Seconds  float64 `json:"seconds"`   // how long the ring was watched
	Events   uint64  `json:"events"`    // new events
	Most     uint64  `json:"most"`      // maximum number of new events within a run interval
	PeakFill int     `json:"peak_fill"` // maximum number of events in the ring
	Restarts int     `json:"restarts"`
	Missed   bool    `json:"missed"` // some events were missed
}

// pollEvery is how often a watched ring is polled: often enough to see events before a
// consumer takes them.
const pollEvery = 2 * time.Millisecond

// watch polls a ring for some time. If its agent restarts, it opens the ring again.
func watch(ctx context.Context, cfg Config) *Burst {
	var b Burst
	var ring *ringbuf.Reader // nil while the ring isn't open
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	start := cfg.Now()
	window, inside := start, uint64(0) // the current run interval, and the events in it
	first := true                      // the events that are already in the ring aren't new
	for now := start; now.Sub(start) < cfg.For && ctx.Err() == nil; now = cfg.Now() {
		if now.Sub(window) >= cfg.RunInterval {
			window, inside = now, 0
		}
		if ring == nil {
			ring, _ = ringbuf.OpenReader(cfg.Path, ringbuf.Observe) // the next poll retries
		}
		if ring != nil {
			fill, err := ring.Read(0, func(batch ringbuf.Batch) {
				if !first {
					b.Events += uint64(batch.Len())
					inside += uint64(batch.Len())
				}
			})
			first = false
			b.Most, b.PeakFill = max(b.Most, inside), max(b.PeakFill, fill)
			if !b.canContinue(err) {
				_ = ring.Close()
				ring = nil
			}
		}
		b.Seconds = now.Sub(start).Seconds()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if ctx.Err() == nil {
		b.Seconds = cfg.For.Seconds()
	}
	if ring != nil {
		_ = ring.Close()
	}
	return &b
}

// canContinue counts an error of reading, and reports whether the ring can still be read.
func (b *Burst) canContinue(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, ringbuf.ErrForeignRead), errors.Is(err, ringbuf.ErrLapped):
		b.Missed = true
		return true
	case errors.Is(err, ringbuf.ErrRestarted), errors.Is(err, ringbuf.ErrShrunk):
		b.Restarts++
	}
	return false
}
