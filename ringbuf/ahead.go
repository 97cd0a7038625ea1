// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync/atomic"
)

// aheadSlots is the number of slots that a reader remembers after the last event that it
// has read. An agent writes the first of them next. The others are needed because an event
// can equal the one that was in the same slot before.
const aheadSlots = 8

// ahead is what a reader remembers after a read, to find out later whether the agent has
// written more before it restarted.
type ahead struct {
	slots []byte // content of the next slots
	write uint64 // writePos; noPosition if nothing is remembered
}

// noPosition is no position in any ring.
const noPosition = math.MaxUint64

// MayHaveDiscarded reports whether a restarted agent may have discarded events that
// weren't read. It is false if the reader has read everything and the slots that the agent
// would have written next are unchanged since. Call it before Close, after an error that
// wraps [ErrRestarted].
func (r *Reader) MayHaveDiscarded() bool {
	if r.mem == nil || r.ahead.write != r.next {
		return true
	}
	unchanged := false
	err := r.guard(func() {
		now, err := r.appendAhead(nil)
		unchanged, r.err = bytes.Equal(now, r.ahead.slots), err
	})
	return err != nil || !unchanged
}

// caughtUp is called when there are no unread events.
func (r *Reader) caughtUp() {
	if r.ahead.write != r.next {
		r.rememberAhead(r.next)
	}
}

// rememberAhead is called when the reader has read up to next, with the writePos that it has
// loaded before.
func (r *Reader) rememberAhead(write uint64) {
	now, err := r.appendAhead(r.ahead.slots[:0])
	if err != nil || atomic.LoadUint64(r.write) != write {
		write = noPosition // the file has shrunk, or the slots may have new events
	}
	r.ahead.slots, r.ahead.write = now, write
}

// appendAhead appends the slots after next, up to the end of the ring. The last slot may have
// been written before it was pushed, so it doesn't count alone: the first one follows it.
func (r *Reader) appendAhead(to []byte) ([]byte, error) {
	n := min(aheadSlots, r.Capacity()-int(r.next))
	b, err := r.peek(int(r.next), n)
	to = appendUnread(to, b)
	if n > 1 || err != nil {
		return to, err
	}
	first, err := r.peek(0, 1)
	return appendUnread(to, first), err
}

// peek returns slots that weren't read: in place if they were written, and as a copy
// otherwise.
func (r *Reader) peek(slot, n int) ([]byte, error) {
	at, end := r.offset(slot), r.offset(slot+n)
	file, ok := r.backing.(fileBacking)
	if !ok || end <= r.extent.end {
		return r.mem[at:end], nil
	}
	return readAt(file.file(), at, end-at) // read(2) doesn't allocate pages
}

// appendUnread appends slots that the agent may be writing. A copy that is partly old differs
// from the slots later, as if events had been discarded. The race detector would report the
// access where agent and reader are in one process. It sees append and copy of slices in any
// function, but not the loads of this one. The size of a slot is a multiple of 8.
//
//go:norace
func appendUnread(to, slots []byte) []byte {
	for ; len(slots) > 0; slots = slots[8:] {
		to = binary.NativeEndian.AppendUint64(to, binary.NativeEndian.Uint64(slots))
	}
	return to
}
