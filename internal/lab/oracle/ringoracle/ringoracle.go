// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ringoracle has the expected metrics of recorded rings.
package ringoracle

import (
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Of returns an Oracle of the events of a recorded ring, and all points of the ring.
func Of(c *ringtest.Case) (*oracle.Oracle, oracle.Points) {
	layout := map[int32]ringbuf.Layout{1: ringbuf.V1, 2: ringbuf.V2, 3: ringbuf.V3, 4: ringbuf.V4}[c.Version]
	o := oracle.New()
	if c.ReadPos == 0 {
		o.Opened()
	}
	for i := range c.Pending {
		o.Add(layout, EventOf(&c.Pending[i]))
	}
	points := o.Points()
	points.Ring(o, layout, c.Capacity, uint64(len(c.Pending)))
	return o, points
}

// EventOf converts an event of a recorded ring.
func EventOf(e *ringtest.Event) ringbuf.Event {
	event := ringbuf.Event{Category: -1, Value: e.Value, TimestampMicros: e.TimestampMicros}
	if e.Category != nil {
		event.Category = ringbuf.Category(*e.Category)
	}
	if e.Type != nil {
		event.Type = ringbuf.Type(*e.Type)
		return event
	}
	event.Named, event.Name = true, ringbuf.MakeName(e.Name)
	return event
}
