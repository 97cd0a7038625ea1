// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Mark is the position of a checkpoint's totals in a ring.
type Mark struct {
	Layout      ringbuf.Layout // 0 if the agent had no ring
	Dev, Ino    uint64
	Capacity    uint64
	From, To    uint64 // committed position, and position of the totals
	Fingerprint uint32 // of the slots between them
	Changed     int64  // [ringbuf.Reader.Changed]
	// Suffixes are the fingerprints of the newest 1, 2, 4 … slots before To. Those
	// that would extend beyond From are 0.
	Suffixes [suffixes]uint32
	Start    int64 // start of the totals, in nanoseconds since the epoch
	// Loaded reports whether the mark comes from a checkpoint. An earlier process may then
	// have committed To.
	Loaded bool
}

// Checkpoint is the stored state of an agent.
type Checkpoint struct {
	Mark

	name       string
	attributes attribute.Set
	ended      []Stream
	endedBytes [][]byte // the totals of ended
	totals     []byte
}

// ErrInvalid reports bytes that aren't a checkpoint of this version.
var ErrInvalid = errors.New("invalid checkpoint")

// A checkpoint consists of its version, the mark, the streams, the totals, and a checksum of
// all these.
// Numbers are little-endian.
const (
	version   = 4
	suffixes  = 7
	markSize  = 1 + 1 + 5*8 + 4 + 4*suffixes + 2*8
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
	sum, err := r.Fingerprint(r.Committed(), r.Position())
	if err != nil {
		return Mark{}, err
	}
	m.Layout, m.Capacity = r.Layout(), uint64(r.Capacity())
	m.Dev, m.Ino = r.ID()
	m.From, m.To, m.Fingerprint, m.Changed = r.Committed(), r.Position(), sum, r.Changed()
	for i := range m.Suffixes {
		n := 1 << i
		if n > m.held(m.From) {
			break
		}
		if m.Suffixes[i], err = r.Fingerprint(m.before(n), m.To); err != nil {
			return Mark{}, err
		}
	}
	return m, nil
}

// before returns the position n slots before To.
func (m *Mark) before(n int) uint64 { return (m.To - uint64(n)) & (m.Capacity - 1) }

// held returns the number of events between a position and To.
func (m *Mark) held(from uint64) int { return int((m.To - from) & (m.Capacity - 1)) }

// State is the part of an agent's state that doesn't depend on its ring.
type State struct {
	Totals
	Name       string        // of the agent
	Attributes attribute.Set // under which Totals are exported
	Ended      []Stream      // streams that ended before Totals began, oldest first
}

// Totals are the totals of an agent with a ring or with stores. Exactly one field is set.
type Totals struct {
	Tally     *tally.Agent
	Processes *tally.Processes
}

func (t Totals) append(b []byte) []byte {
	if t.Processes != nil {
		return t.Processes.AppendTotals(b)
	}
	return t.Tally.AppendTotals(b)
}

// Append appends the encoded checkpoint of an agent to b.
func Append(b []byte, m Mark, s State) []byte {
	from := len(b)
	le := binary.LittleEndian
	b = append(b, version, byte(m.Layout))
	for _, v := range [...]uint64{m.Dev, m.Ino, m.Capacity, m.From, m.To} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, m.Fingerprint)
	for _, sum := range m.Suffixes {
		b = le.AppendUint32(b, sum)
	}
	for _, v := range [...]int64{m.Changed, m.Start} {
		b = le.AppendUint64(b, uint64(v))
	}
	b = appendStreams(b, s)
	b = s.append(b)
	return le.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// Parse decodes the result of [Append]. For any other bytes, the error wraps
// [ErrInvalid]. The checkpoint refers to b.
func Parse(b []byte) (Checkpoint, error) {
	if len(b) > 0 && b[0] != version {
		return Checkpoint{}, fmt.Errorf("%w: another release stored it (format version %d; this release reads version %d)", ErrInvalid, b[0], version)
	}
	if len(b) < markSize+checkSize {
		return Checkpoint{}, fmt.Errorf("%w: truncated to %d bytes", ErrInvalid, len(b))
	}
	le := binary.LittleEndian
	body, sum := b[:len(b)-checkSize], le.Uint32(b[len(b)-checkSize:])
	if crc32.Checksum(body, castagnoli) != sum {
		return Checkpoint{}, fmt.Errorf("%w: wrong checksum", ErrInvalid)
	}
	var c Checkpoint
	if err := c.parseStreams(body[markSize:]); err != nil {
		return Checkpoint{}, err
	}
	c.Layout, c.Loaded, body = ringbuf.Layout(body[1]), true, body[2:]
	for _, v := range [...]*uint64{&c.Dev, &c.Ino, &c.Capacity, &c.From, &c.To} {
		*v, body = le.Uint64(body), body[8:]
	}
	c.Fingerprint, body = le.Uint32(body), body[4:]
	for i := range c.Suffixes {
		c.Suffixes[i], body = le.Uint32(body), body[4:]
	}
	for _, v := range [...]*int64{&c.Changed, &c.Start} {
		*v, body = int64(le.Uint64(body)), body[8:]
	}
	return c, nil
}
