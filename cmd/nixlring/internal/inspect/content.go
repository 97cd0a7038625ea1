// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/follow"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Burst is what a ring was seen to be given.
type Burst struct {
	Seconds  float64 `json:"seconds"`   // that it was watched
	Events   uint64  `json:"events"`    // that came
	Most     uint64  `json:"most"`      // of them within a run interval
	PeakFill int     `json:"peak_fill"` // events that stood in the ring at once
	Restarts int     `json:"restarts"`
	Missed   bool    `json:"missed"` // not all that came was seen
}

// lookEvery is how often a ring is looked at while it is watched: often enough
// to see a flush before a consumer takes it away.
const lookEvery = 2 * time.Millisecond

// looker looks at a ring without taking anything.
type looker struct {
	cfg     Config
	content Content
	burst   Burst
	watched bool

	window time.Time // when the run interval began that is being counted
	inside uint64
}

// look reads what stands in the ring, then watches it for a while.
func (r *Report) look(ctx context.Context, cfg Config) error {
	l := &looker{cfg: cfg}
	ring := follow.NewRing(cfg.Path, ringbuf.Observe, l)
	if err := ring.Poll(0); err != nil {
		return err
	}
	l.content.Pending = ring.Fill()
	l.content.Fill = float64(ring.Fill()) / float64(l.content.Capacity-1)
	r.Ring, r.Content = true, &l.content
	if cfg.For > 0 {
		l.watch(ctx, ring)
		r.Burst = &l.burst
	}
	return ring.Close()
}

func (l *looker) watch(ctx context.Context, ring *follow.Ring) {
	start := l.cfg.Now()
	l.watched, l.window = true, start
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for now := start; now.Sub(start) < l.cfg.For; now = l.cfg.Now() {
		if now.Sub(l.window) >= l.cfg.RunInterval {
			l.window, l.inside = now, 0
		}
		if err := ring.Poll(0); err == nil {
			l.burst.PeakFill = max(l.burst.PeakFill, ring.Fill())
		}
		l.burst.Seconds = now.Sub(start).Seconds()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
	l.burst.Seconds = l.cfg.For.Seconds()
}

// Opened implements [follow.Handler].
func (l *looker) Opened(r *follow.Ring) {
	if !l.watched {
		l.content.Layout, l.content.EventSize, l.content.Capacity = r.Layout().String(), r.Layout().EventSize(), r.Capacity()
	}
}

// Events implements [follow.Handler].
func (l *looker) Events(_ *follow.Ring, b ringbuf.Batch) {
	if l.watched {
		l.burst.Events += uint64(b.Len())
		l.inside += uint64(b.Len())
		l.burst.Most = max(l.burst.Most, l.inside)
	}
	for i := range b.Len() {
		e := b.Event(i)
		if !e.Named && e.Type == ringbuf.TypeEventsDropped && b.Layout() >= ringbuf.V4 {
			l.content.Dropped += e.Value
		}
		if b.Layout() == ringbuf.V1 && !l.watched {
			at := time.UnixMicro(int64(min(e.TimestampMicros, math.MaxInt64)))
			if l.content.Oldest == nil {
				l.content.Oldest = &at
			}
			l.content.Newest = &at
		}
	}
}

// Missed implements [follow.Handler].
func (l *looker) Missed(*follow.Ring, error) { l.burst.Missed = true }

// Ended implements [follow.Handler].
func (l *looker) Ended(_ *follow.Ring, err error) {
	if errors.Is(err, ringbuf.ErrRestarted) || errors.Is(err, ringbuf.ErrShrunk) {
		l.burst.Restarts++
	}
}
