// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Ring configures the ring that an [Agent] writes. Zero fields default to NIXL's
// environment variables, or else to NIXL's defaults. NIXL_TELEMETRY_ENABLE isn't
// read: [WithRing] itself enables the ring.
type Ring struct {
	// Dir is the directory of the ring file, which is named after the agent. The
	// directory must exist. The default is NIXL_TELEMETRY_DIR, or else /tmp.
	Dir string
	// Layout is the ring's layout. The default is V4, which current NIXL releases
	// write. It can't carry the events of [Agent.Event]; V1 and V2Named can.
	Layout ringbuf.Layout
	// Capacity is the number of slots, a power of two from 2 to
	// [ringbuf.MaxCapacity]. It is also the number of events that can be staged
	// within a run interval. The default is NIXL_TELEMETRY_BUFFER_SIZE, or else
	// 4096.
	Capacity int
	// RunInterval is the time between two flushes, at least 1 ms. The default is
	// NIXL_TELEMETRY_RUN_INTERVAL (in ms), or else 100 ms.
	RunInterval time.Duration
}

func (r *Ring) setDefaults() error {
	env := nixlenv.Env(os.LookupEnv)
	var errs []error
	if r.Dir == "" {
		r.Dir = env.Dir()
	}
	if r.Layout == 0 {
		r.Layout = ringbuf.V4
	}
	if r.Capacity == 0 {
		var err error
		r.Capacity, err = env.BufferSize()
		errs = append(errs, err)
	} else if !nixlenv.ValidBufferSize(r.Capacity) {
		errs = append(errs, fmt.Errorf("capacity is %d: it must be a power of two from 2 to %d", r.Capacity, ringbuf.MaxCapacity))
	}
	if r.RunInterval == 0 {
		var err error
		r.RunInterval, err = env.RunInterval()
		errs = append(errs, err)
	} else if r.RunInterval < time.Millisecond {
		errs = append(errs, fmt.Errorf("run interval is %v: it must be 1ms or more", r.RunInterval))
	}
	return errors.Join(errs...)
}

// RingTelemetry counts the events that an [Agent] wrote to its ring or dropped.
// Staged events aren't included.
type RingTelemetry struct {
	Written        uint64 // written to the ring
	DroppedStaging uint64 // dropped because the staging buffer was full
	DroppedRing    uint64 // dropped because the ring was full (no reader, or a slow one) or its file is broken
	Unsupported    uint64 // dropped because the ring's layout can't carry them
}

// RingTelemetry returns the counts since the agent was created. Without a ring, it
// only counts events that were dropped instead of being passed to sinks.
func (a *Agent) RingTelemetry() RingTelemetry {
	if a == nil || a.outlet == nil {
		return RingTelemetry{}
	}
	o := a.outlet
	o.flushing.Lock()
	defer o.flushing.Unlock()
	var t RingTelemetry
	if o.ring != nil {
		t = o.ring.telemetry
	}
	o.staging.Lock()
	defer o.staging.Unlock()
	t.DroppedStaging = o.allDrops
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
	for len(events) > 0 {
		n := r.leading(events)
		if n == 0 {
			r.telemetry.Unsupported++
			events = events[1:]
			continue
		}
		if err := r.pushAll(events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// leading returns the number of leading events that the ring's layout can carry.
func (r *ringWriter) leading(events []ringbuf.Event) int {
	for i := range events {
		if !r.carries(&events[i]) {
			return i
		}
	}
	return len(events)
}

// carries reports whether the ring's layout can carry an event.
func (r *ringWriter) carries(e *ringbuf.Event) bool {
	if e.Named {
		return r.w.Layout().Named()
	}
	return e.Type != ringbuf.TypeEventsDropped || r.w.Layout() >= ringbuf.V4
}

func (r *ringWriter) pushAll(events []ringbuf.Event) error {
	for len(events) > 0 {
		n, err := r.w.PushBatch(events)
		r.telemetry.Written += uint64(n)
		events = events[n:]
		if err != nil {
			r.telemetry.DroppedRing += uint64(len(events))
			if r.broken {
				return nil // already reported
			}
			r.broken = true
			return err
		}
		if len(events) > 0 {
			r.telemetry.DroppedRing++
			events = events[1:]
		}
	}
	return nil
}
