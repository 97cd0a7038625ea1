// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package interop

import (
	"fmt"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// sequence is a sequence of events that both sides compute; see
// testdata/interop/ring.hpp. Every field follows from the seed and the event's
// number, so the check finds torn, lost, repeated and reordered events.
type sequence struct {
	seed uint64
	next uint64 // the number of the next event
}

// mix returns splitmix64 of seed and i.
func mix(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

const numberBits = 40

func valueOf(h, i uint64) uint64 { return i&(1<<numberBits-1) | h>>numberBits<<numberBits }

func typeOf(h uint64) ringbuf.Type { return ringbuf.Type(h % 20) }

func categoryOf(h uint64) ringbuf.Category { return ringbuf.Category(h >> 8 & 7) }

func timeOf(h, i uint64) uint64 { return 1_700_000_000_000_000 + i + h&0xff*1_000_000 }

func nameOf(h uint64) (n ringbuf.Name) {
	for at := range 31 {
		n[at] = 'a' + byte(h>>(at&15*4)&15)
	}
	return n
}

// event returns the i-th event, as it is passed to a writer of layout l.
func event(l ringbuf.Layout, seed, i uint64) ringbuf.Event {
	h := mix(seed, i)
	e := ringbuf.Event{Value: valueOf(h, i), Category: categoryOf(h)}
	if l.Named() {
		e.Named, e.Name, e.TimestampMicros = true, nameOf(h), timeOf(h, i)
		return e
	}
	e.Type = typeOf(h)
	return e
}

// check compares a batch with the sequence.
func (s *sequence) check(b ringbuf.Batch) error {
	for i := range b.Len() {
		got, want := b.Event(i), event(b.Layout(), s.seed, s.next)
		if b.Layout() > ringbuf.V2 {
			want.Category = got.Category // it isn't in the ring
		}
		if got != want {
			return fmt.Errorf("got %+v, want event %d: %+v", got, s.next, want)
		}
		s.next++
	}
	return nil
}
