// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// FuzzAdd counts events of any bytes. Nothing panics, no event is lost, and the totals equal
// the model's.
func FuzzAdd(f *testing.F) {
	for i, l := range ringbuf.Layouts() {
		f.Add(uint8(i), uint16(3), bytes.Repeat([]byte{0xff}, 10*l.EventSize()))
		f.Add(uint8(i), uint16(0), make([]byte, 10*l.EventSize()))
	}
	for _, c := range ringtest.Cases(f) {
		if b, err := os.ReadFile(c.File); err == nil && c.Readable() && len(b) < 4096 {
			for i := range ringbuf.Layouts() {
				f.Add(uint8(i), uint16(2), b[ringtest.HeaderSize:])
			}
		}
	}
	shape := shapeOf(f, Config{})
	f.Fuzz(func(t *testing.T, layout uint8, split uint16, slots []byte) {
		l := ringbuf.Layouts()[int(layout)%len(ringbuf.Layouts())]
		events := eventsIn(l, slots[:min(len(slots), l.EventSize()<<10)])
		agent, want := NewAgent(shape), oracle.New()
		feed(t, agent, l, events, int(split))
		for b, i := batchOf(t, l, events...), 0; i < b.Len(); i++ {
			want.Add(l, b.Event(i))
		}
		checkCounts(t, agent, uint64(len(events)))
		if len(agent.Series()) < 64 {
			compare(t, want, agent)
		}
	})
}

// eventsIn decodes the slots of a ring.
func eventsIn(l ringbuf.Layout, slots []byte) (events []ringbuf.Event) {
	le := binary.LittleEndian
	for s := range slices.Chunk(slots[:len(slots)/l.EventSize()*l.EventSize()], l.EventSize()) {
		e := ringbuf.Event{Value: le.Uint64(s[len(s)-8:])}
		switch l {
		case ringbuf.V1:
			e.Category, e.Named, e.Name = ringbuf.Category(le.Uint32(s[8:])), true, ringbuf.Name(s[12:44])
		case ringbuf.V2:
			e.Category, e.Type = ringbuf.Category(le.Uint32(s)), ringbuf.Type(le.Uint32(s[4:]))
		default:
			e.Type = ringbuf.Type(le.Uint32(s))
		}
		events = append(events, e)
	}
	return events
}
