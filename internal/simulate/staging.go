// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// staged is an event that isn't in the ring yet.
type staged struct {
	value uint64
	at    uint64 // microseconds since the epoch; for layout V1
	kind  kind
}

// staging is the queue of events that an agent has recorded since its last flush. It also counts
// what happened to the events.
type staging struct {
	layout     ringbuf.Layout
	capacity   int
	events     []staged
	backends   []staged // V1: events that backends return at each flush, without staging
	unreported uint64   // drops since the last flush, which V4 reports

	scratch []ringbuf.Event

	journal *oracle.Oracle // of the events that reached the ring; may be nil

	written     uint64 // number of events that reached the ring
	stagingFull uint64 // number of events dropped because staging was full
	ringFull    uint64 // number of events dropped because the ring was full
	discarded   uint64 // number of staged events of lives that ended without a flush
}

// scratchEvents is the number of events that are pushed at once. They fit in the CPU's first-level
// cache.
const scratchEvents = 128

func newStaging(journal *oracle.Oracle) staging {
	return staging{journal: journal, scratch: make([]ringbuf.Event, scratchEvents)}
}

func (s *staging) reset(l Life) {
	s.layout, s.capacity = l.Layout, l.Capacity
	if cap(s.events) < l.Capacity {
		s.events = make([]staged, 0, l.Capacity)
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
func (s *staging) record(w *ringbuf.Writer, events ...staged) error {
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
		return s.record(w, staged{kind: kind(op.err), value: 1, at: us})
	}
	bytes, requests := ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
	if op.write {
		bytes, requests = ringbuf.TypeTxBytes, ringbuf.TypeTxRequests
	}
	later := us + op.extra&3 // V1 records the events at two times
	group := [4]staged{
		{kind: kind(ringbuf.TypeXferPostTime), value: op.post, at: us},
		{kind: kind(ringbuf.TypeXferTime), value: op.xfer, at: later},
		{kind: kind(bytes), value: op.size, at: later},
		{kind: kind(requests), value: 1, at: later},
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
		return s.record(w, staged{kind: kindBlocksReused, value: value, at: us})
	case 1, 2:
		s.backends = append(s.backends, staged{kind: kindBackendProgress, value: value, at: us})
	case 3:
		s.backends = append(s.backends, staged{kind: kindBackendMessages, value: value, at: us})
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
	return s.push(w, []staged{{kind: kind(ringbuf.TypeEventsDropped), value: unreported}})
}

func (s *staging) pushStaged(w *ringbuf.Writer) error {
	err := s.push(w, s.events)
	s.events = s.events[:0]
	return err
}

// push tries to push each event once, and drops it if the ring is full.
func (s *staging) push(w *ringbuf.Writer, events []staged) error {
	for len(events) > 0 {
		chunk := s.scratch[:min(len(events), len(s.scratch))]
		for i := range chunk {
			e := &events[i]
			chunk[i] = templates[e.kind]
			chunk[i].Value, chunk[i].TimestampMicros = e.value, e.at
		}
		for len(chunk) > 0 {
			n, err := w.PushBatch(chunk)
			s.written += uint64(n)
			if s.journal != nil {
				for _, e := range chunk[:n] {
					s.journal.Add(s.layout, inRing(s.layout, e))
				}
			}
			events, chunk = events[n:], chunk[n:]
			if err != nil {
				s.discarded += uint64(len(events))
				return err
			}
			if len(chunk) > 0 {
				s.ringFull++
				events, chunk = events[1:], chunk[1:]
			}
		}
	}
	return nil
}

// discard discards the staged events without a flush.
func (s *staging) discard() {
	s.discarded += uint64(len(s.events) + len(s.backends))
	s.events, s.backends = s.events[:0], s.backends[:0]
}
