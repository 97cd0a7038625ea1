// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Mark is the position of a checkpoint's totals in a ring.
type Mark struct {
	Layout      ringbuf.Layout // 0 if the agent had no ring
	Dev, Ino    uint64
	Capacity    uint64
	From, To    uint64 // committed position, and position of the totals
	Fingerprint uint32 // of the slots between them
	Start       int64  // start of the totals, in nanoseconds since the epoch
}

// ErrInvalid reports bytes that aren't a checkpoint of this version.
var ErrInvalid = errors.New("invalid checkpoint")

// A checkpoint consists of its version, the mark, the agent's state, and a checksum of all
// these. Numbers are little-endian.
const (
	version   = 4
	markSize  = 1 + 1 + 5*8 + 4 + 8
	checkSize = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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

// Append appends an agent's checkpoint to b. state appends the state of its totals.
func Append(b []byte, m Mark, state func([]byte) []byte) []byte {
	from := len(b)
	le := binary.LittleEndian
	b = append(b, version, byte(m.Layout))
	for _, v := range [...]uint64{m.Dev, m.Ino, m.Capacity, m.From, m.To} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, m.Fingerprint)
	b = le.AppendUint64(b, uint64(m.Start))
	b = state(b)
	return le.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// Parse returns the mark of a checkpoint and the state of its totals, which is a part of b. The
// mark is valid even if the state can't be restored: events before it must not be counted again.
// The error for bytes that aren't a checkpoint wraps [ErrInvalid].
func Parse(b []byte) (m Mark, state []byte, err error) {
	if len(b) > 0 && b[0] != version {
		return m, nil, fmt.Errorf("%w: another release stored it (format version %d; this release reads version %d)", ErrInvalid, b[0], version)
	}
	if len(b) < markSize+checkSize {
		return m, nil, fmt.Errorf("%w: truncated to %d bytes", ErrInvalid, len(b))
	}
	le := binary.LittleEndian
	body, sum := b[:len(b)-checkSize], le.Uint32(b[len(b)-checkSize:])
	if crc32.Checksum(body, castagnoli) != sum {
		return m, nil, fmt.Errorf("%w: wrong checksum", ErrInvalid)
	}
	m.Layout, body = ringbuf.Layout(body[1]), body[2:]
	for _, v := range [...]*uint64{&m.Dev, &m.Ino, &m.Capacity, &m.From, &m.To} {
		*v, body = le.Uint64(body), body[8:]
	}
	m.Fingerprint, body = le.Uint32(body), body[4:]
	m.Start, body = int64(le.Uint64(body)), body[8:]
	return m, body, nil
}
