// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// buffer stages an agent's events and flushes them to its ring and its sinks at
// the end of each run interval, as the telemetry thread of a NIXL agent does.
type buffer struct {
	agent *core
	times bool // each event needs its time

	staging  sync.Mutex // guards what follows; held only to copy events
	events   []ringbuf.Event
	dropped  uint64 // because the buffer was full, since the last flush
	allDrops uint64 // because the buffer was full or closed, in total
	capacity int
	closed   bool // the last flush has begun

	flushing sync.Mutex // guards what follows
	spare    []ringbuf.Event
	ring     *ringWriter // may be nil
	sinks    []sink.Sink
	batch    []sink.Event
	failing  bool // the last background flush failed

	stop    chan struct{}
	stopped sync.WaitGroup
}

// openBuffer creates the ring and starts flushing. It does nothing for an agent that has
// neither a ring nor sinks.
func (c *core) openBuffer(cfg *config, path string) error {
	if !cfg.ring && len(cfg.sinks) == 0 {
		return nil
	}
	b := &buffer{
		agent:    c,
		times:    len(cfg.sinks) > 0,
		events:   make([]ringbuf.Event, 0, cfg.capacity),
		spare:    make([]ringbuf.Event, 0, cfg.capacity),
		capacity: cfg.capacity,
		sinks:    cfg.sinks,
		stop:     make(chan struct{}),
	}
	if cfg.ring {
		w, err := ringbuf.Create(path, cfg.layout, cfg.capacity)
		if err != nil {
			return err
		}
		if c.file, err = os.Stat(path); err != nil {
			return errors.Join(err, w.Close())
		}
		b.ring = &ringWriter{w: w}
		b.times = b.times || cfg.layout == ringbuf.V1
	}
	c.buffer = b
	b.stopped.Go(func() { b.run(cfg.runInterval) })
	return nil
}

// stage stages all of the events, or drops all of them.
func (b *buffer) stage(events ...ringbuf.Event) {
	if b.times {
		now := uint64(time.Now().UnixMicro())
		for i := range events {
			events[i].TimestampMicros = now
		}
	}
	b.staging.Lock()
	defer b.staging.Unlock()
	if b.closed { // meanwhile: the SDK has counted the operation
		b.allDrops += uint64(len(events))
		b.agent.drop(context.Background(), uint64(len(events)))
		return
	}
	if len(b.events)+len(events) > b.capacity {
		b.dropped += uint64(len(events))
		b.allDrops += uint64(len(events))
		return
	}
	b.events = append(b.events, events...)
}

func (b *buffer) run(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-ticker.C:
		}
		b.report(b.flush())
	}
}

// report passes the error of a background flush to OpenTelemetry's error handler,
// but only the first one until a flush succeeds.
func (b *buffer) report(err error) {
	b.flushing.Lock()
	fresh := err != nil && !b.failing
	b.failing = err != nil
	b.flushing.Unlock()
	if fresh {
		otel.Handle(fmt.Errorf("telemetry of agent %s: %w", b.agent.name, err))
	}
}

// flush pushes the staged events, followed by the number of dropped events.
func (b *buffer) flush() error { return b.flushAnd(false) }

// flushAnd also closes the buffer for further events if last is true.
func (b *buffer) flushAnd(last bool) error {
	b.flushing.Lock()
	defer b.flushing.Unlock()
	b.staging.Lock()
	b.closed = b.closed || last
	events, dropped := b.events, b.dropped
	b.events, b.dropped = b.spare[:0], 0
	b.staging.Unlock()
	b.spare = events
	if dropped > 0 {
		b.agent.drop(context.Background(), dropped)
		report := ringbuf.NewEvent(ringbuf.TypeEventsDropped, dropped)
		report.TimestampMicros = uint64(time.Now().UnixMicro())
		events = append(events, report)
	}
	if len(events) == 0 {
		return nil
	}
	var errs []error
	if b.ring != nil {
		errs = append(errs, b.ring.push(events))
	}
	if len(b.sinks) > 0 {
		b.fill(events)
		for _, s := range b.sinks {
			errs = append(errs, s.Write(b.batch))
		}
	}
	return errors.Join(errs...)
}

func (b *buffer) fill(events []ringbuf.Event) {
	b.batch = slices.Grow(b.batch[:0], len(events))
	for i := range events {
		e := &events[i]
		b.batch = append(b.batch, sink.Event{
			Agent:    b.agent.name,
			Time:     time.UnixMicro(int64(e.TimestampMicros)),
			Category: e.Category,
			Name:     text.Valid(e.EventName()),
			Value:    e.Value,
		})
	}
}

// close flushes once more and closes the ring.
func (b *buffer) close() error {
	close(b.stop)
	b.stopped.Wait()
	err := b.flushAnd(true)
	b.flushing.Lock()
	defer b.flushing.Unlock()
	if b.ring != nil {
		err = errors.Join(err, b.ring.w.Close())
	}
	b.sinks = nil
	return err
}

// RingTelemetry counts the events that an [Agent] wrote to its ring or dropped.
// Staged events aren't included.
type RingTelemetry struct {
	Written        uint64 // written to the ring
	DroppedStaging uint64 // dropped because the staging buffer was full, or the agent was just being closed
	DroppedRing    uint64 // dropped because the ring was full (no reader, or a slow one) or its file is broken
	Unsupported    uint64 // dropped because the ring's layout can't carry them
}

// RingTelemetry returns the counts since the agent was created. Without a ring, it
// only counts events that were dropped instead of being passed to sinks.
func (a *Agent) RingTelemetry() RingTelemetry {
	if a == nil || a.buffer == nil {
		return RingTelemetry{}
	}
	b := a.buffer
	b.flushing.Lock()
	defer b.flushing.Unlock()
	var t RingTelemetry
	if b.ring != nil {
		t = b.ring.telemetry
	}
	b.staging.Lock()
	defer b.staging.Unlock()
	t.DroppedStaging = b.allDrops
	return t
}

// ringWriter pushes events to a ring as a NIXL agent does.
type ringWriter struct {
	w         *ringbuf.Writer
	telemetry RingTelemetry
	broken    bool
}

// push tries to push each event once and drops it if the ring is full. If the ring
// is broken, push drops all events and returns an error the first time.
func (r *ringWriter) push(events []ringbuf.Event) error {
	if r.w.Layout() < ringbuf.V4 { // has no event for drops
		all := len(events)
		events = slices.DeleteFunc(slices.Clone(events), func(e ringbuf.Event) bool { return !e.Named && e.Type == ringbuf.TypeEventsDropped })
		r.telemetry.Unsupported += uint64(all - len(events))
	}
	for len(events) > 0 {
		n, err := r.w.PushBatch(events)
		r.telemetry.Written += uint64(n)
		events = events[n:]
		switch {
		case len(events) == 0:
			return nil
		case err == nil:
			r.telemetry.DroppedRing++
		case errors.Is(err, ringbuf.ErrNoType):
			r.telemetry.Unsupported++
		default:
			r.telemetry.DroppedRing += uint64(len(events))
			if r.broken {
				return nil // already reported
			}
			r.broken = true
			return err
		}
		events = events[1:]
	}
	return nil
}
