// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// buffer stages an agent's events and flushes them to its ring and its sinks at
// the end of each run interval, as the telemetry thread of a NIXL agent does.
type buffer struct {
	agent    *Agent
	sinks    []sink.Sink
	capacity int
	layout   ringbuf.Layout // of the ring
	unnamed  sync.Once      // reports an event that the layout can't carry

	staging sync.Mutex // guards what follows; held only to copy events
	events  []ringbuf.Event
	dropped uint64 // because the buffer was full, since the last flush
	totals  RingTelemetry
	closed  bool // the last flush has begun

	flushing sync.Mutex // guards what follows
	spare    []ringbuf.Event
	ring     *ringWriter // may be nil
	batch    []sink.Event
	failing  bool // the last flush of events failed

	stop chan struct{}
}

// openBuffer creates the ring, if any, and starts flushing.
func openBuffer(a *Agent, cfg *config) (*buffer, error) {
	b := &buffer{
		agent: a, sinks: cfg.sinks, capacity: cfg.capacity, layout: cfg.layout,
		events: make([]ringbuf.Event, 0, cfg.capacity),
		spare:  make([]ringbuf.Event, 0, cfg.capacity),
		stop:   make(chan struct{}),
	}
	if cfg.ring {
		var err error
		if b.ring, err = createRing(filepath.Join(cfg.dir, a.name), cfg.layout, cfg.capacity); err != nil {
			return nil, err
		}
	}
	go b.run(cfg.runInterval)
	return b, nil
}

// stage stages all of the events, or drops all of them. A nil buffer ignores them.
func (b *buffer) stage(events ...ringbuf.Event) {
	if b == nil {
		return
	}
	if b.ring != nil && b.layout != ringbuf.V1 && events[0].Named {
		b.reject()
		return
	}
	if len(b.sinks) > 0 || b.layout == ringbuf.V1 { // newer rings have no times
		now := uint64(time.Now().UnixMicro())
		for i := range events {
			events[i].TimestampMicros = now
		}
	}
	b.staging.Lock()
	defer b.staging.Unlock()
	if b.closed { // meanwhile: the SDK has counted the operation
		b.totals.DroppedStaging += uint64(len(events))
		b.agent.series.drop(context.Background(), uint64(len(events)))
		return
	}
	if len(b.events)+len(events) > b.capacity {
		b.dropped += uint64(len(events))
		b.totals.DroppedStaging += uint64(len(events))
		return
	}
	b.events = append(b.events, events...)
}

// reject drops an event that the ring can't carry.
func (b *buffer) reject() {
	b.staging.Lock()
	b.totals.DroppedRing++
	b.staging.Unlock()
	b.unnamed.Do(func() {
		otel.Handle(fmt.Errorf("agent %s: a ring of layout %v can't carry events with names, so they are dropped; use agent.WithLayout(ringbuf.V1)", b.agent.name, b.layout))
	})
}

// run flushes at the end of each run interval. OpenTelemetry's error handler gets the first
// error until a flush succeeds. It may close the agent, so nothing waits for this goroutine.
func (b *buffer) run(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-ticker.C:
		}
		if fresh, err := b.flush(false); fresh {
			otel.Handle(fmt.Errorf("telemetry of agent %s: %w", b.agent.name, err))
		}
	}
}

// flush pushes the staged events, followed by the number of dropped events. The last flush
// also closes the buffer for further events. An error is fresh if the flush before succeeded.
func (b *buffer) flush(last bool) (fresh bool, err error) {
	b.flushing.Lock()
	defer b.flushing.Unlock()
	b.staging.Lock()
	b.closed = b.closed || last
	events, dropped := b.events, b.dropped
	b.events, b.dropped = b.spare[:0], 0
	b.staging.Unlock()
	b.spare = events
	staged := uint64(len(events))
	if dropped > 0 {
		b.agent.series.drop(context.Background(), dropped)
		report := ringbuf.NewEvent(ringbuf.TypeEventsDropped, dropped)
		report.TimestampMicros = uint64(time.Now().UnixMicro())
		events = append(events, report)
	}
	if len(events) == 0 {
		return false, nil
	}
	var done RingTelemetry
	var errs []error
	if b.ring != nil { // events that don't fit are dropped; if the ring's file is broken, all of them
		n, err := b.ring.PushBatch(events)
		done.Written, done.DroppedRing, errs = uint64(n), uint64(len(events)-n), append(errs, err)
	}
	if len(b.sinks) > 0 {
		b.batch = slices.Grow(b.batch[:0], len(events))
		for i := range events {
			b.batch = append(b.batch, sink.NewEvent(b.agent.name, ringbuf.V4, &events[i], time.UnixMicro(int64(events[i].TimestampMicros))))
		}
		for _, s := range b.sinks {
			if err := s.Write(b.batch); err != nil {
				done.DroppedSinks, errs = staged, append(errs, err)
			}
		}
		b.agent.series.drop(context.Background(), done.DroppedSinks)
	}
	b.staging.Lock()
	b.totals.Written += done.Written
	b.totals.DroppedRing += done.DroppedRing
	b.totals.DroppedSinks += done.DroppedSinks
	b.staging.Unlock()
	err = errors.Join(errs...)
	fresh, b.failing = err != nil && !b.failing, err != nil
	return fresh, err
}

// close flushes once more and closes the ring.
func (b *buffer) close() error {
	close(b.stop)
	_, err := b.flush(true)
	if b.ring != nil { // no flush has events any more
		err = errors.Join(err, b.ring.Close())
	}
	return err
}
