// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"math"
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

// looker observes a ring.
type looker struct {
	cfg     Config
	reader  *ringbuf.Reader // nil after a restart, until the next poll
	content Content
	burst   Burst
	watched bool

	window time.Time // start of the current run interval
	inside uint64    // events in the current run interval
}

// look reads the content of the ring. With cfg.For, it then polls the ring for this time.
func (r *Report) look(ctx context.Context, cfg Config) error {
	reader, err := ringbuf.OpenReader(cfg.Path, ringbuf.Observe)
	if err != nil {
		return err
	}
	l := &looker{cfg: cfg, reader: reader, content: Content{
		Layout: reader.Layout().String(), EventSize: reader.Layout().EventSize(), Capacity: reader.Capacity(),
	}}
	l.content.Pending = l.poll()
	l.content.Fill = float64(l.content.Pending) / float64(l.content.Capacity-1)
	r.Ring, r.Content = true, &l.content
	if cfg.For > 0 {
		l.watch(ctx)
		r.Burst = &l.burst
	}
	return l.close()
}

func (l *looker) close() error {
	if l.reader == nil {
		return nil
	}
	return l.reader.Close()
}

// poll reads the new events and returns the number of events in the ring. If the agent has
// restarted, poll closes the ring, and the next poll opens it again.
func (l *looker) poll() (fill int) {
	var err error
	if l.reader == nil {
		if l.reader, err = ringbuf.OpenReader(l.cfg.Path, ringbuf.Observe); err != nil {
			return 0
		}
	}
	fill, err = l.reader.Read(0, l.events)
	switch {
	case err == nil:
	case errors.Is(err, ringbuf.ErrForeignRead), errors.Is(err, ringbuf.ErrLapped):
		l.burst.Missed = true
	default:
		if errors.Is(err, ringbuf.ErrRestarted) || errors.Is(err, ringbuf.ErrShrunk) {
			l.burst.Restarts++
		}
		_ = l.reader.Close()
		l.reader = nil
	}
	return fill
}

// watch polls the ring and records its bursts.
func (l *looker) watch(ctx context.Context) {
	start := l.cfg.Now()
	l.watched, l.window = true, start
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for now := start; now.Sub(start) < l.cfg.For; now = l.cfg.Now() {
		if now.Sub(l.window) >= l.cfg.RunInterval {
			l.window, l.inside = now, 0
		}
		l.burst.PeakFill = max(l.burst.PeakFill, l.poll())
		l.burst.Seconds = now.Sub(start).Seconds()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
	l.burst.Seconds = l.cfg.For.Seconds()
}

// events adds new events to the report.
func (l *looker) events(b ringbuf.Batch) {
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
