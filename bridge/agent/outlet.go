// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
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

// outlet stages an agent's events and flushes them to its ring and its sinks at
// the end of each run interval, as the telemetry thread of a NIXL agent does.
type outlet struct {
	agent *Agent
	times bool // each event needs its time

	staging  sync.Mutex // guards what follows; held only to copy events
	events   []ringbuf.Event
	dropped  uint64 // because the buffer was full, since the last flush
	allDrops uint64 // because the buffer was full, in total
	capacity int

	flushing sync.Mutex // guards what follows
	spare    []ringbuf.Event
	ring     *ringWriter // may be nil
	sinks    []sink.Sink
	batch    []sink.Event
	failing  bool // the last background flush failed

	stop    chan struct{}
	stopped sync.WaitGroup
}

// openOutlet creates the ring and starts flushing. It returns nil for an agent
// that has neither a ring nor sinks.
func openOutlet(a *Agent, c *config) (*outlet, error) {
	if c.ring == nil && len(c.sinks) == 0 {
		return nil, nil
	}
	o := &outlet{
		agent:    a,
		times:    len(c.sinks) > 0,
		events:   make([]ringbuf.Event, 0, c.capacity),
		spare:    make([]ringbuf.Event, 0, c.capacity),
		capacity: c.capacity,
		sinks:    c.sinks,
		stop:     make(chan struct{}),
	}
	if c.ring != nil {
		w, err := ringbuf.Create(filepath.Join(c.ring.Dir, a.name), c.ring.Layout, c.ring.Capacity)
		if err != nil {
			return nil, err
		}
		o.ring = &ringWriter{w: w}
		o.times = o.times || c.ring.Layout == ringbuf.V1
	}
	o.stopped.Go(func() { o.run(c.runInterval) })
	return o, nil
}

// stage stages all of the events, or drops all of them.
func (o *outlet) stage(events ...ringbuf.Event) {
	if o.times {
		now := uint64(max(o.agent.clock().UnixMicro(), 0))
		for i := range events {
			events[i].TimestampMicros = now
		}
	}
	o.staging.Lock()
	defer o.staging.Unlock()
	if len(o.events)+len(events) > o.capacity {
		o.dropped += uint64(len(events))
		o.allDrops += uint64(len(events))
		return
	}
	o.events = append(o.events, events...)
}

func (o *outlet) run(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-o.stop:
			return
		case <-ticker.C:
		}
		o.report(o.flush())
	}
}

// report passes the error of a background flush to OpenTelemetry's error handler,
// but only the first one until a flush succeeds.
func (o *outlet) report(err error) {
	o.flushing.Lock()
	fresh := err != nil && !o.failing
	o.failing = err != nil
	o.flushing.Unlock()
	if fresh {
		otel.Handle(fmt.Errorf("telemetry of agent %s: %w", o.agent.name, err))
	}
}

// flush pushes the staged events, followed by the number of dropped events.
func (o *outlet) flush() error {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	o.staging.Lock()
	events, dropped := o.events, o.dropped
	o.events, o.dropped = o.spare[:0], 0
	o.staging.Unlock()
	o.spare = events
	if dropped > 0 {
		o.agent.drop(dropped)
		report := ringbuf.NewEvent(ringbuf.TypeEventsDropped, dropped)
		report.TimestampMicros = uint64(max(o.agent.clock().UnixMicro(), 0))
		events = append(events, report)
	}
	if len(events) == 0 {
		return nil
	}
	var errs []error
	if o.ring != nil {
		errs = append(errs, o.ring.push(events))
	}
	if len(o.sinks) > 0 {
		o.fill(events)
		for _, s := range o.sinks {
			errs = append(errs, s.Write(o.batch))
		}
	}
	return errors.Join(errs...)
}

func (o *outlet) fill(events []ringbuf.Event) {
	o.batch = slices.Grow(o.batch[:0], len(events))
	for i := range events {
		e := &events[i]
		o.batch = append(o.batch, sink.Event{
			Agent:    o.agent.name,
			Time:     time.UnixMicro(int64(e.TimestampMicros)),
			Category: e.Category,
			Name:     validName(e.EventName()),
			Value:    e.Value,
		})
	}
}

// close flushes once more and closes the ring.
func (o *outlet) close() error {
	close(o.stop)
	o.stopped.Wait()
	err := o.flush()
	o.flushing.Lock()
	defer o.flushing.Unlock()
	if o.ring != nil {
		err = errors.Join(err, o.ring.w.Close())
	}
	o.sinks = nil
	return err
}
