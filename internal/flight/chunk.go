// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"encoding/binary"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// chunk is a piece of an agent's history: entries, oldest first. Only its end changes, so
// that one goroutine can read the beginning while another appends.
//
// An entry has its kind, the time since the previous one, and its content. Numbers are
// varints, so a transfer takes about 14 bytes instead of 64.
type chunk struct {
	layout   ringbuf.Layout // of the ring before the first entry
	capacity int
	open     bool // whether the ring was open before the first entry

	first, last int64 // times of the first and the last entry
	data        []byte
	reading     bool // the chunk must not be freed or reused
}

// The sizes of chunks. An agent that writes little needs little.
const (
	minChunk = 1 << 10
	maxChunk = 32 << 10
)

// The kinds of entries.
const (
	events byte = iota
	opened      // layout, capacity
	missed      // why
	full
	closed // why
)

const (
	// countBytes is the fixed size of the number of events of an entry.
	countBytes = 4
	// maxHead is the maximum size of an entry without its content.
	maxHead = 1 + binary.MaxVarintLen64 + countBytes
	// maxEvent is the maximum size of an event: a time, a category, a name and a value.
	maxEvent = 3*binary.MaxVarintLen64 + 1 + len(ringbuf.Name{})
	// maxWhy is the maximum length of a reason.
	maxWhy = 200
)

// room returns the number of bytes that can be appended.
func (c *chunk) room() int { return cap(c.data) - len(c.data) }

// begin returns the data with the beginning of a new entry. The entry counts once commit is
// called.
func (c *chunk) begin(kind byte, at int64) []byte {
	if len(c.data) == 0 {
		c.first, c.last = at, at
	}
	return binary.AppendUvarint(append(c.data, kind), uint64(at-c.last))
}

func (c *chunk) commit(data []byte, at int64) { c.data, c.last = data, at }

// addOpened appends that the ring was opened.
func (c *chunk) addOpened(at int64, l ringbuf.Layout, capacity int) {
	c.commit(binary.AppendUvarint(append(c.begin(opened, at), byte(l)), uint64(capacity)), at)
}

// addState appends a state of the ring, with its reason.
func (c *chunk) addState(at int64, kind byte, why string) {
	data := c.begin(kind, at)
	if kind != full {
		why = why[:min(len(why), maxWhy)]
		data = append(binary.AppendUvarint(data, uint64(len(why))), why...)
	}
	c.commit(data, at)
}

// addEvents appends the events of a batch from an index on, and returns the index of the first one
// for which there was no room. If the memory of the batch faults, nothing is appended.
func (c *chunk) addEvents(at int64, b ringbuf.Batch, from int) (next int) {
	data := c.begin(events, at)
	count := len(data)
	data = append(data, 0, 0, 0, 0)
	next = from
	if typed := b.Typed(); typed != nil {
		for ; next < b.Len() && cap(data)-len(data) >= maxEvent; next++ {
			e := typed[next]
			data = binary.AppendUvarint(binary.AppendUvarint(data, uint64(e.Type)), e.Value)
		}
	} else {
		for ; next < b.Len() && cap(data)-len(data) >= maxEvent; next++ {
			e := b.Event(next)
			data = appendEvent(data, b.Layout(), &e)
		}
	}
	binary.LittleEndian.PutUint32(data[count:], uint32(next-from))
	c.commit(data, at)
	return next
}

// appendEvent appends an event of a layout before [ringbuf.V3].
func appendEvent(data []byte, l ringbuf.Layout, e *ringbuf.Event) []byte {
	if l == ringbuf.V1 {
		data = binary.AppendUvarint(data, e.TimestampMicros)
	}
	data = binary.AppendVarint(data, int64(e.Category))
	if l.Named() {
		n := len(e.Name)
		for n > 0 && e.Name[n-1] == 0 {
			n--
		}
		data = append(append(data, byte(n)), e.Name[:n]...)
	} else {
		data = binary.AppendUvarint(data, uint64(e.Type))
	}
	return binary.AppendUvarint(data, e.Value)
}

// entry is an entry of a chunk.
type entry struct {
	at       int64
	kind     byte
	why      string
	layout   ringbuf.Layout // for opened
	capacity int            // likewise
	events   []ringbuf.Event
}

// reader reads the entries of a chunk. This process wrote them, so they are valid.
type reader struct {
	data []byte
	at   int64
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	r.data = r.data[n:]
	return v
}

func (r *reader) bytes(n int) []byte {
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

// next reads an entry. It reuses the memory of the events. l is the layout of the ring.
func (r *reader) next(e *entry, l ringbuf.Layout) bool {
	if len(r.data) == 0 {
		return false
	}
	e.kind = r.bytes(1)[0]
	r.at += int64(r.number())
	e.at, e.why, e.events = r.at, "", e.events[:0]
	switch e.kind {
	case opened:
		e.layout = ringbuf.Layout(r.bytes(1)[0])
		e.capacity = int(r.number())
	case missed, closed:
		e.why = string(r.bytes(int(r.number())))
	case full:
		e.why = recording.WhyFull
	default:
		for range binary.LittleEndian.Uint32(r.bytes(countBytes)) {
			e.events = append(e.events, r.event(l))
		}
	}
	return true
}

func (r *reader) event(l ringbuf.Layout) (e ringbuf.Event) {
	if l < ringbuf.V3 {
		if l == ringbuf.V1 {
			e.TimestampMicros = r.number()
		}
		category, n := binary.Varint(r.data)
		r.data = r.data[n:]
		e.Category = ringbuf.Category(category)
	}
	if e.Named = l.Named(); e.Named {
		copy(e.Name[:], r.bytes(int(r.bytes(1)[0])))
	} else {
		e.Type = ringbuf.Type(r.number())
	}
	e.Value = r.number()
	return e
}

// keep is how long entries are kept. A recording begins [Window] before its cause.
const keep = Window + after + time.Second
