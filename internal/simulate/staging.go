// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import "github.com/nixl-otel/nixl-otel/ringbuf"

// staged is an event before it is in the ring.
type staged struct {
	value uint64
	at    uint64 // microseconds since the epoch; for layout V1
	kind  kind
}

// staging is what an agent's threads have recorded since its last flush, and
// what becomes of it.
type staging struct {
	layout   ringbuf.Layout
	capacity int
	events   []staged // its room is the bound
	backends []staged // V1: asked from the backends at each flush, not staged
	unsaid   uint64   // dropped since the last flush; V4 reports it

	scratch []ringbuf.Event

	written   sums // what reached the ring
	histogram histograms
	noRoom    sums // dropped as staging was full
	ringFull  sums // dropped as the ring was full
	discarded sums // staged, but the life ended without a flush
}

// scratchEvents is how many events are pushed at once: few enough to stay in
// the processor's first cache.
const scratchEvents = 128

func newStaging() staging {
	return staging{histogram: newHistograms(), scratch: make([]ringbuf.Event, scratchEvents)}
}

func (s *staging) reset(l Life) {
	s.layout, s.capacity = l.Layout, l.Capacity
	if cap(s.events) < l.Capacity {
		s.events = make([]staged, 0, l.Capacity)
	}
	s.events, s.backends, s.unsaid = s.events[:0], s.backends[:0], 0
	s.histogram.group = s.histogram.group[:0]
}

// room says whether an operation's events fit staging, and what is staged then
// fits an empty ring.
func (s *staging) room() bool {
	// The four of a transfer, a named one of V1 with it, the report of V4, and
	// what is deregistered right after the last flush of a life.
	const most = 6 + maxRegions
	return len(s.events)+len(s.backends)+most < s.capacity
}

// record stages events that go in together or not at all. In layout V1, whose
// staging has no bound, what is full goes to the ring at once: the ring holds
// less than staging, so that the difference can't be seen.
func (s *staging) record(w *ringbuf.Writer, events ...staged) error {
	if len(s.events)+len(events) > s.capacity {
		if s.layout != ringbuf.V1 {
			s.noRoom.addAll(s.layout, events)
			s.unsaid += uint64(len(events))
			return nil
		}
		if err := s.pushStaged(w); err != nil {
			return err
		}
	}
	s.events = append(s.events, events...)
	return nil
}

// transfer stages what an operation leaves behind, in the order of its release.
func (s *staging) transfer(w *ringbuf.Writer, op *operation, us uint64) error {
	if op.failed {
		return s.record(w, staged{kind: kind(op.err), value: 1, at: us})
	}
	bytes, requests := ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
	if op.write {
		bytes, requests = ringbuf.TypeTxBytes, ringbuf.TypeTxRequests
	}
	later := us + op.extra&3 // between the two records of a release with times
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

// named adds, to one operation in 32, an event that only layout V1 has.
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

// flush pushes what is staged, then what the backends have to say (V1), then
// how much was dropped (V4), as NIXL's flushPendingEvents and its forerunners.
func (s *staging) flush(w *ringbuf.Writer) error {
	if err := s.pushStaged(w); err != nil {
		return err
	}
	err := s.push(w, s.backends)
	s.backends = s.backends[:0]
	if err != nil {
		return err
	}
	unsaid := s.unsaid
	s.unsaid = 0
	if unsaid == 0 || s.layout < ringbuf.V4 {
		return nil
	}
	return s.push(w, []staged{{kind: kind(ringbuf.TypeEventsDropped), value: unsaid}})
}

func (s *staging) pushStaged(w *ringbuf.Writer) error {
	err := s.push(w, s.events)
	s.events = s.events[:0]
	return err
}

// push tries each event once, and drops it where the ring has no room.
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
			s.written.addAll(s.layout, events[:n])
			s.histogram.add(events[:n])
			events, chunk = events[n:], chunk[n:]
			if err != nil {
				s.discarded.addAll(s.layout, events)
				return err
			}
			if len(chunk) > 0 {
				s.ringFull.addAll(s.layout, events[:1])
				events, chunk = events[1:], chunk[1:]
			}
		}
	}
	return nil
}

// discard forgets what is staged: an agent that exits doesn't flush.
func (s *staging) discard() {
	s.discarded.addAll(s.layout, s.events)
	s.discarded.addAll(s.layout, s.backends)
	s.events, s.backends = s.events[:0], s.backends[:0]
}
