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

// Ring describes the ring that an [Agent] writes. Zero fields take NIXL's own
// variables, or else NIXL's defaults. NIXL_TELEMETRY_ENABLE isn't read:
// [WithRing] itself enables the ring.
type Ring struct {
	// Dir is the directory of the ring's file, whose name is the agent's. It
	// must exist. The default is NIXL_TELEMETRY_DIR, or else /tmp.
	Dir string
	// Layout is the ring's layout. The default is V4, which NIXL writes today.
	// It can't carry what [Agent.Event] records; V1 and V2Named can.
	Layout ringbuf.Layout
	// Capacity is the number of slots, a power of two from 2 to
	// [ringbuf.MaxCapacity]. As many events can be staged within a run interval.
	// The default is NIXL_TELEMETRY_BUFFER_SIZE, or else 4096.
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
		errs = append(errs, fmt.Errorf("capacity is %d: it must be a power of two, from 2 to %d", r.Capacity, ringbuf.MaxCapacity))
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

// RingTelemetry says what happened to the events that an [Agent] had for its
// ring. Staged events aren't included.
type RingTelemetry struct {
	Written        uint64 // written to the ring
	DroppedStaging uint64 // dropped because more was recorded in a run interval than the ring has slots
	DroppedRing    uint64 // dropped because the ring was full (its reader lags or there is none) or its file broken
	Unsupported    uint64 // the layout can't carry them
}

// RingTelemetry returns what happened to the agent's events so far. Without a
// ring, it only counts events dropped on their way to sinks.
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

// push tries each event once and drops it if the ring is full. It returns an
// error once if the ring is broken, and drops all events from then on.
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

// leading returns how many events, from the first on, the ring's layout can carry.
func (r *ringWriter) leading(events []ringbuf.Event) int {
	for i := range events {
		if !r.carries(&events[i]) {
			return i
		}
	}
	return len(events)
}

// carries reports whether agents with the ring's layout write such an event.
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
				return nil // it was reported
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
