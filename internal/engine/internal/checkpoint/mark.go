// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Mark is the position of a checkpoint's totals in a ring.
type Mark struct {
	Layout      ringbuf.Layout // 0 if the agent had no ring
	Dev, Ino    uint64
	Capacity    uint64
	From, To    uint64 // committed position, and position of the totals
	Fingerprint uint32 // of the slots between them
	Start       int64  // start of the totals, in nanoseconds since the epoch
}

// MarkOf returns the mark of an agent's totals after they have counted all events that r
// has read. r is nil if the agent has no ring. The error is one of
// [ringbuf.Reader.Fingerprint].
func MarkOf(r *ringbuf.Reader, start int64) (Mark, error) {
	m := Mark{Start: start}
	if r == nil {
		return m, nil
	}
	if r.Committed() == 0 { // nothing else shows a restart
		var err error
		if m.Fingerprint, err = r.Fingerprint(r.Position()); err != nil {
			return Mark{}, err
		}
	}
	m.Layout, m.Capacity = r.Layout(), uint64(r.Capacity())
	m.Dev, m.Ino = r.ID()
	m.From, m.To = r.Committed(), r.Position()
	return m, nil
}

// held returns the number of events between a position and To.
func (m *Mark) held(from uint64) int { return int((m.To - from) & (m.Capacity - 1)) }
