package bridge

import "github.com/nixl-otel/nixl-otel/ringbuf"

// RingTelemetry is what became of the events that an [Agent] had for its ring.
type RingTelemetry struct {
	Written        uint64 // reached the ring
	DroppedStaging uint64 // more was recorded in a run interval than the ring has slots
	DroppedRing    uint64 // the ring was full, or its file broken: its reader doesn't keep up, or there is none
	Unsupported    uint64 // the layout can't carry them
}

// RingTelemetry says what became of the agent's events so far. What is staged
// isn't in it yet. It is empty without a ring, but for what was dropped in the
// staging for sinks.
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
	t.DroppedStaging = o.staged
	return t
}

// ringWriter pushes events to a ring as an agent does.
type ringWriter struct {
	w         *ringbuf.Writer
	telemetry RingTelemetry
	broken    bool
}

// push tries each event once, and drops it where the ring has no room. An
// error is that of a ring that is gone; what comes after it is dropped.
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

// leading is how many events from the first on the ring's layout can carry.
func (r *ringWriter) leading(events []ringbuf.Event) int {
	for i := range events {
		if !r.carries(&events[i]) {
			return i
		}
	}
	return len(events)
}

// carries says whether agents of the ring's layout write such an event.
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
				return nil // it was said
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
