// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ring"
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

// looker observes a ring.
type looker struct {
	cfg     Config
	content Content
	burst   Burst
	watched bool

	window time.Time // start of the current run interval
	inside uint64    // events in the current run interval
}

// look reads the content of the ring. With cfg.For, it then polls the ring for this time.
func (r *Report) look(ctx context.Context, cfg Config) error {
	l := &looker{cfg: cfg}
	reader := ring.New(cfg.Path, ringbuf.Observe, l)
	if err := reader.Poll(0); err != nil {
		return err
	}
	l.content.Pending = reader.Fill()
	l.content.Fill = float64(reader.Fill()) / float64(l.content.Capacity-1)
	r.Ring, r.Content = true, &l.content
	if cfg.For > 0 {
		l.watch(ctx, reader)
		r.Burst = &l.burst
	}
	return reader.Close()
}

// watch polls the ring and records its bursts.
func (l *looker) watch(ctx context.Context, reader *ring.Reader) {
	start := l.cfg.Now()
	l.watched, l.window = true, start
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for now := start; now.Sub(start) < l.cfg.For; now = l.cfg.Now() {
		if now.Sub(l.window) >= l.cfg.RunInterval {
			l.window, l.inside = now, 0
		}
		if err := reader.Poll(0); err == nil {
			l.burst.PeakFill = max(l.burst.PeakFill, reader.Fill())
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

// Opened implements [ring.Handler].
func (l *looker) Opened(r *ring.Reader) {
	if !l.watched {
		l.content.Layout, l.content.EventSize, l.content.Capacity = r.Layout().String(), r.Layout().EventSize(), r.Capacity()
	}
}

// Events implements [ring.Handler].
func (l *looker) Events(_ *ring.Reader, b ringbuf.Batch) {
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

// Missed implements [ring.Handler].
func (l *looker) Missed(*ring.Reader, error) { l.burst.Missed = true }

// Ended implements [ring.Handler].
func (l *looker) Ended(_ *ring.Reader, err error) {
	if errors.Is(err, ringbuf.ErrRestarted) || errors.Is(err, ringbuf.ErrShrunk) {
		l.burst.Restarts++
	}
}
