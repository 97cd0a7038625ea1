// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"fmt"
	"os"
	"sync/atomic"
)

// Commit returns the slots of all events that were read to the agent. For an
// observer it does nothing.
//
// If another process has changed the ring, the error wraps [ErrRestarted] or
// [ErrForeignRead]. Then nothing is committed, and the positions that the caller
// saved are no longer valid. The error can also wrap [ErrShrunk], [ErrInvalid] or
// [os.ErrClosed].
func (r *Reader) Commit() error { return r.CommitTo(r.next) }

// CommitTo is like [Reader.Commit], but commits only the events up to a position
// that [Reader.Position] returned since the last [ErrForeignRead]. Events read
// later stay uncommitted.
//
// Only an agent that starts stores position 0. So a commit to position 0 stops at the slot
// before. The event there counts as committed, and its slot is returned with the next ones,
// or by [Reader.Release]. A ring of two slots has no other slot, and stores 0.
func (r *Reader) CommitTo(position uint64) error {
	switch {
	case r.mem == nil:
		return r.wrap(os.ErrClosed)
	case r.mode == Observe:
		return nil
	case position > r.mask || r.distance(r.committed, position) > r.unreturned():
		return r.wrap(fmt.Errorf("%w: position %d was not read", ErrInvalid, position))
	}
	keep := position == 0 && r.committed != 0 && r.mask > 1
	if keep {
		position = r.mask
	}
	if position != r.committed {
		r.position = position
		if err := r.guard(r.runCommit); err != nil {
			return err
		}
	}
	r.kept = keep
	return nil
}

func (r *Reader) guardedCommit() {
	_, err := r.look()
	done := false
	if err == nil {
		done, err = r.swap(r.position)
	}
	if err == nil && !done {
		// Another process moved readPos after look loaded it. A second look
		// finds out which one.
		var s state
		if s, err = r.look(); err == nil {
			err = r.followForeign(s)
		}
	}
	if r.err = err; err == nil {
		r.committed, r.kept, r.sum, r.sumTo = r.position, false, 0, 0
		r.rememberRun()
	}
}

// Release returns the slot that a commit to position 0 has kept. Call it before Close if no
// later reader will know the position. If an agent has restarted, nothing changes.
func (r *Reader) Release() {
	if r.mode == Consume && r.kept && r.next == 0 {
		_ = r.guard(func() { atomic.CompareAndSwapUint64(r.read, r.committed, 0) })
	}
}

// Skip marks pending events up to a position as read without returning them, for
// example because they were counted before a restart. They stay uncommitted. It returns how
// many events are still pending. The error wraps [ErrInvalid] if there were fewer before the
// position; other errors are those of [Reader.Read].
func (r *Reader) Skip(position uint64) (pending int, err error) {
	err = r.guard(func() { pending, r.err = r.skip(position) })
	return pending, err
}

func (r *Reader) skip(position uint64) (pending int, err error) {
	s, err := r.look() // the caller knows the events, so verify isn't needed
	if err != nil {
		return 0, err
	}
	n := r.distance(r.next, position)
	if position > r.mask || n > s.pending {
		return 0, fmt.Errorf("%w: %d events follow position %d, too few to reach %d", ErrInvalid, s.pending, r.next, position)
	}
	if err = r.checkWritten(r.next, n); err == nil {
		r.moveTo(position)
		r.rememberRun()
	}
	return s.pending - n, err
}

// Fingerprint returns a checksum of the slots before a position. A restarted agent overwrites
// these slots first. The error wraps [ErrShrunk], [ErrInvalid] or [os.ErrClosed].
func (r *Reader) Fingerprint(to uint64) (sum uint32, err error) {
	if to > r.mask {
		return 0, r.wrap(fmt.Errorf("%w: there is no slot %d", ErrInvalid, to))
	}
	err = r.guard(func() {
		if r.err = r.checkWritten(0, int(to)); r.err != nil {
			return
		}
		if sum = r.sum; to != r.sumTo {
			sum = r.extend(0, 0, to)
		}
	})
	return sum, err
}
