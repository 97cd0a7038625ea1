// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// FuzzAdd puts any bytes into the slots of a ring. Nothing panics, no event is lost, and
// the totals equal the model's.
func FuzzAdd(f *testing.F) {
	for i, l := range ringbuf.Layouts() {
		f.Add(uint8(i), uint16(40), slotsOf(f, l))
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
	shape := shape(f, tally.Config{})
	f.Fuzz(func(t *testing.T, layout uint8, split uint16, slots []byte) {
		l := ringbuf.Layouts()[int(layout)%len(ringbuf.Layouts())]
		events := min(len(slots)/l.EventSize(), 1<<10)
		r := readerOf(t, l, events, slots)
		if r.Layout() != l {
			t.Skip("a ring of this size has another layout")
		}
		agent, want := tally.NewAgent(shape), oracle.New()
		for _, limit := range []int{int(split), 0} {
			if _, err := r.Read(limit, func(b ringbuf.Batch) {
				agent.Add(b)
				for i := range b.Len() {
					want.Add(l, b.Event(i))
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		checkCounts(t, agent, uint64(events))
		if len(agent.Series()) < 64 {
			compare(t, want, agent)
		}
	})
}

// readerOf reads a ring that was never drained.
func readerOf(t *testing.T, l ringbuf.Layout, events int, slots []byte) *ringbuf.Reader {
	t.Helper()
	capacity := 2
	for capacity <= events {
		capacity *= 2
	}
	mem := newRing(t, l, capacity).mem
	binary.LittleEndian.PutUint64(mem, uint64(events)) // write position
	copy(mem[ringbuf.HeaderSize:], slots[:events*l.EventSize()])
	return openRing(t, mem)
}

// slotsOf returns the slots of a ring with all kinds of events.
func slotsOf(tb testing.TB, l ringbuf.Layout) []byte {
	tb.Helper()
	r := newRing(tb, l, 128)
	r.push(generator{rand.New(rand.NewPCG(1, 1)), l}.events(100))
	return r.mem[ringbuf.HeaderSize:]
}
