// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Events that backends and applications may write in layout V1. The names are invented.
var (
	backendProgress = ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "ucx_progress_calls", 0)
	backendMessages = ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "ucx_am_messages", 0)
	peerConnected   = ringbuf.NewNamedEvent(ringbuf.CategoryConnection, "peer_connected", 0)
	agentStarted    = ringbuf.NewNamedEvent(ringbuf.CategorySystem, "agent_started", 0)
	blocksReused    = ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "kv_blocks_reused", 0)
)

// with returns an event with a value and a time, in microseconds since the epoch.
func with(e ringbuf.Event, value, at uint64) ringbuf.Event {
	e.Value, e.TimestampMicros = value, at
	return e
}

func event(t ringbuf.Type, value, at uint64) ringbuf.Event {
	return with(ringbuf.NewEvent(t, 0), value, at)
}

// staging is the queue of events that an agent has recorded since its last flush. It also counts
// what happened to the events.
type staging struct {
	layout     ringbuf.Layout
	capacity   int
	events     []ringbuf.Event
	backends   []ringbuf.Event // V1: events that backends return at each flush, without staging
	unreported uint64          // drops since the last flush, which V4 reports

	journal *oracle.Oracle // of the events that reached the ring; may be nil

	written     uint64 // number of events that reached the ring
	stagingFull uint64 // number of events dropped because staging was full
	ringFull    uint64 // number of events dropped because the ring was full
	discarded   uint64 // number of staged events of lives that ended without a flush
}

func (s *staging) reset(l Life) {
	s.layout, s.capacity = l.Layout, l.Capacity
	if cap(s.events) < l.Capacity {
		s.events = make([]ringbuf.Event, 0, l.Capacity)
	}
	s.events, s.backends, s.unreported = s.events[:0], s.backends[:0], 0
}

// hasRoom reports whether the events of an operation fit in staging, and all staged events then
// fit in an empty ring.
func (s *staging) hasRoom() bool {
	// Four events of a transfer, a named event of V1, the report of V4, and the
	// deregistrations before the last flush of a life.
	const most = 6 + maxRegions
	return len(s.events)+len(s.backends)+most < s.capacity
}

// record stages all events or none. In layout V1, whose staging has no limit, it pushes the staged
// events when staging is full. This makes no visible difference, because the ring holds fewer
// events than staging.
func (s *staging) record(w *ringbuf.Writer, events ...ringbuf.Event) error {
	if len(s.events)+len(events) > s.capacity {
		if s.layout != ringbuf.V1 {
			s.stagingFull += uint64(len(events))
			s.unreported += uint64(len(events))
			return nil
		}
		if err := s.pushStaged(w); err != nil {
			return err
		}
	}
	s.events = append(s.events, events...)
	return nil
}

// transfer stages the events of an operation, in the order of the layout's release.
func (s *staging) transfer(w *ringbuf.Writer, op *operation, us uint64) error {
	if op.failed {
		return s.record(w, event(op.err, 1, us))
	}
	bytes, requests := ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
	if op.write {
		bytes, requests = ringbuf.TypeTxBytes, ringbuf.TypeTxRequests
	}
	later := us + op.extra&3 // V1 records the events at two times
	group := [4]ringbuf.Event{
		event(ringbuf.TypeXferPostTime, op.post, us),
		event(ringbuf.TypeXferTime, op.xfer, later),
		event(bytes, op.size, later),
		event(requests, 1, later),
	}
	if s.layout >= ringbuf.V4 {
		return s.record(w, group[:]...)
	}
	if err := s.record(w, group[:1]...); err != nil {
		return err
	}
	if err := s.record(w, group[1:]...); err != nil || s.layout != ringbuf.V1 {
		return err
	}
	return s.named(w, op, later)
}

// named adds an event that only layout V1 has to one in 32 operations.
func (s *staging) named(w *ringbuf.Writer, op *operation, us uint64) error {
	value := op.extra >> 40 // 16 bits
	switch op.extra >> 2 & 127 {
	case 0:
		return s.record(w, with(blocksReused, value, us))
	case 1, 2:
		s.backends = append(s.backends, with(backendProgress, value, us))
	case 3:
		s.backends = append(s.backends, with(backendMessages, value, us))
	}
	return nil
}

// flush pushes the staged events, then the backends' events (V1), then the number of dropped
// events (V4), like NIXL's flushPendingEvents and its predecessors.
func (s *staging) flush(w *ringbuf.Writer) error {
	if err := s.pushStaged(w); err != nil {
		return err
	}
	err := s.push(w, s.backends)
	s.backends = s.backends[:0]
	if err != nil {
		return err
	}
	unreported := s.unreported
	s.unreported = 0
	if unreported == 0 || s.layout < ringbuf.V4 {
		return nil
	}
	return s.push(w, []ringbuf.Event{event(ringbuf.TypeEventsDropped, unreported, 0)})
}

func (s *staging) pushStaged(w *ringbuf.Writer) error {
	err := s.push(w, s.events)
	s.events = s.events[:0]
	return err
}

// push tries to push each event once, and drops it if the ring is full.
func (s *staging) push(w *ringbuf.Writer, events []ringbuf.Event) error {
	for len(events) > 0 {
		n, err := w.PushBatch(events)
		s.written += uint64(n)
		if s.journal != nil {
			for _, e := range events[:n] {
				s.journal.Add(s.layout, inRing(s.layout, e))
			}
		}
		if events = events[n:]; err != nil {
			s.discarded += uint64(len(events))
			return err
		}
		if len(events) > 0 {
			s.ringFull++
			events = events[1:]
		}
	}
	return nil
}

// inRing returns an event as a reader finds it in a ring of a layout.
func inRing(l ringbuf.Layout, e ringbuf.Event) ringbuf.Event {
	if l.Named() && !e.Named {
		e.Named, e.Name = true, ringbuf.MakeName(e.Type.LegacyName())
	}
	return e
}

// discard discards the staged events without a flush.
func (s *staging) discard() {
	s.discarded += uint64(len(s.events) + len(s.backends))
	s.events, s.backends = s.events[:0], s.backends[:0]
}
