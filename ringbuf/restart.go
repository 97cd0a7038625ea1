// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// The table shows each step of an agent that restarts on its ring, and what a
// consumer sees after the step. The agent can be preempted or exit between any two
// steps. c is the position that this reader has committed, n the position that it
// has read up to.
//
//	step                  what a reader sees
//	ftruncate             if the file is smaller, access to the missing part is ErrShrunk.
//	                      Pending events belong to the old run and are read
//	writePos = 0          c = 0 < n: writePos is behind n, ErrRestarted
//	                      c ≠ 0: the ring seems to have wrapped, with events pending up to
//	                      its end. See below
//	readPos = 0           c ≠ 0: ErrRestarted, as if another consumer stored 0
//	version = 0           ErrRestarted
//	capacity, mask        ErrRestarted
//	version = V           same as after readPos = 0. If c = n = 0, the reader had read
//	                      nothing of the old run and continues with the new one
//	events                c = 0 < n: the agent overwrites slots that were read, ErrRestarted
//
// A reader never stores position 0 itself, so it belongs to the agent; see [Reader.CommitTo].
//
// Only writePos = 0 with c ≠ 0 is ambiguous. One rule is enough for it: a surprising header
// isn't believed until it has stayed the same for a moment. A restarting agent makes its next
// store within nanoseconds, unless it is preempted. So nothing is pending until a consumer has
// seen this header for 20 ms. For an observer, the slots decide; see checkObserved.

// settleTime is how long a consumer sees an ambiguous header before it believes it. An agent's two
// stores are adjacent instructions, so it is stopped between them less often than once in a million
// starts. A longer time would let a full ring overflow.
const settleTime = 20 * time.Millisecond

// state is the checked result of one look at a ring.
type state struct {
	write, read uint64
	fill        int // events in the ring
	pending     int // events in the ring that weren't read yet
}

// look loads and checks the header, and computes how many events are in the ring.
func (r *Reader) look() (state, error) {
	s, err := r.load()
	if err != nil {
		return state{}, err
	}
	s.fill, s.pending = r.distance(s.read, s.write), r.distance(r.next, s.write)
	if r.mode == Observe {
		return s, nil
	}
	if s.write != 0 || s.read != r.committed {
		r.since = time.Time{}
	}
	if s.read != r.committed {
		return state{}, r.followForeign(s)
	}
	if s.fill < r.unreturned() {
		return state{}, ErrRestarted
	}
	return s, nil
}

// load loads and checks the header.
func (r *Reader) load() (s state, err error) {
	// Acquire: pairs with the agent's release store after it wrote the slot.
	// A restarting agent stores writePos before readPos. The loads have the same
	// order, so a restart between them appears as the old writePos with readPos 0.
	s = state{write: atomic.LoadUint64(r.write), read: atomic.LoadUint64(r.read)}
	if r.mode == Observe {
		s = r.loadBoth(s.read)
	}
	if !r.is(r.layout.Version(), r.mask+1) {
		return state{}, ErrRestarted
	}
	return s, checkPositions(s.write, s.read, r.mask)
}

// verify reduces the pending events of a look to those that certainly belong to
// this run.
func (r *Reader) verify(s state) (state, error) {
	switch {
	case r.mode == Observe:
		return s, r.checkObserved(s)
	case s.write != 0 && !r.sameRun():
		return s, ErrRestarted
	case s.write != 0:
		return s, nil
	}
	if r.since.IsZero() {
		r.since = r.backing.Now()
	}
	if r.backing.Now().Sub(r.since) < settleTime {
		s.pending = 0
	}
	return s, nil
}

// checkSize returns an error if the file's size has changed: slots may be missing, or
// belong to another layout.
func (r *Reader) checkSize() error {
	s, err := r.backing.Stat()
	switch size := int64(len(r.mem)); {
	case err != nil:
		return err
	case s.Size < size:
		return ErrShrunk
	case s.Size > size:
		return ErrRestarted
	}
	return nil
}

// followForeign adopts a read position that another process has stored, and skips the events
// that it has taken. A read position of 0 looks like that of a restarted agent.
//
// The other process can also move the position backward: it may store a position
// that is based on a load from before this reader's last commit. The events from there on
// aren't read again, only committed again. A position of the next lap looks the same.
func (r *Reader) followForeign(s state) error {
	if s.read == 0 {
		return ErrRestarted
	}
	from, to := r.committed, s.read
	if r.distance(r.next, to) <= s.pending {
		r.moveTo(to)
	}
	r.committed, r.kept, r.sum, r.sumTo = to, false, 0, 0
	return fmt.Errorf("%w (read position moved from %d to %d)", ErrForeignRead, from, to)
}

// swap moves readPos, and reports whether it did. It fails if an agent has
// restarted since the last look, or if another process has moved readPos. If readPos
// is 0, the compare-and-swap can't detect a restart, because a restarting agent also stores 0.
// The slots show it once the agent has written other events.
func (r *Reader) swap(to uint64) (bool, error) {
	if !r.sameRun() {
		return false, ErrRestarted
	}
	// Release: the reader doesn't access the slots again. Pairs with the agent's
	// acquire load before it writes a slot.
	return atomic.CompareAndSwapUint64(r.read, r.committed, to), nil
}

// written returns an error if slots, a copy of those that start at next, don't all hold
// events. Truncating a file within its last page causes no fault: the missing part reads as
// zeros, and only the file's size shows the truncation.
func (r *Reader) written(slots []byte) error {
	last := slots[len(slots)-r.layout.EventSize():]
	fromEnd := len(r.slots) - int(r.next)*r.layout.EventSize() - len(slots)
	if fromEnd >= len(r.mem)%os.Getpagesize() && !isZero(last) {
		return nil
	}
	return r.checkSize()
}

func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
