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
func (r *Reader) CommitTo(position uint64) error {
	switch {
	case r.mem == nil:
		return r.wrap(os.ErrClosed)
	case r.mode == Observe:
		return nil
	case position > r.mask || r.distance(r.committed, position) > r.Uncommitted():
		return r.wrap(fmt.Errorf("%w: position %d was not read", ErrInvalid, position))
	case position == r.committed:
		return nil
	}
	r.position = position
	return r.guard(r.runCommit)
}

func (r *Reader) guardedCommit() {
	s, err := r.look()
	done := false
	if err == nil {
		done, err = r.swap(s.write, r.position)
	}
	if err == nil && !done {
		// Another process moved readPos after look loaded it. A second look
		// finds out which one.
		if s, err = r.look(); err == nil {
			err = r.followForeign(s)
		}
	}
	if r.err = err; err == nil {
		r.moved += uint64(r.distance(r.committed, r.position))
		r.committed, r.seen, r.seenTo = r.position, 0, 0
		if r.committed == 0 {
			if now, err := r.stat(); err == nil {
				r.firstChanged = now.Changed
			}
		}
		r.rememberRun()
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

// Fingerprint returns a checksum of the slots between two positions: of all slots
// from position 0, because a restarted agent also begins there, or else of the
// newest 64. The checksum changes when an agent overwrites these slots. The error
// wraps [ErrShrunk], [ErrInvalid] or [os.ErrClosed].
func (r *Reader) Fingerprint(from, to uint64) (sum uint32, err error) {
	if from > r.mask || to > r.mask {
		return 0, r.wrap(fmt.Errorf("%w: there is no slot %d", ErrInvalid, max(from, to)))
	}
	err = r.guard(func() {
		if r.err = r.checkWritten(from, r.distance(from, to)); r.err != nil {
			return
		}
		if sum = r.seen; r.committed != 0 || from != 0 || to != r.seenTo {
			sum = r.checksum(from, to)
		}
	})
	return sum, err
}

// Changed returns [FileState.Changed] as of the newest read or commit while position 0 was
// committed, or the time when the reader had read up to the end of the ring. It is for
// later calls of [Reader.StartedSince] and [Reader.Continue].
func (r *Reader) Changed() int64 {
	if r.next == 0 {
		return r.endChanged
	}
	return r.firstChanged
}

// Continue is called for a new reader if an earlier one had read up to the same position, and
// its Changed returned t.
func (r *Reader) Continue(t int64) {
	if r.next == 0 {
		r.endChanged = t
	} else {
		r.firstChanged = t
	}
}

// MayHaveRestarted reports whether the last Read may have returned the first events of
// a restarted agent although it returned no error. This is possible if the agent restarts
// while the reader is at position 0. It reports true only once.
func (r *Reader) MayHaveRestarted() bool {
	may := r.mayHaveRestarted
	r.mayHaveRestarted = false
	return may
}

// StartedSince reports whether it is certain that an agent has started on the file
// since an earlier reader had read all events up to a position and its Changed
// returned t. An agent changes this time when it starts. When it stores the first
// event in a page, the kernel also changes it, so nothing is certain if the agent has
// pushed other events since.
func (r *Reader) StartedSince(t int64, position uint64) (started bool) {
	err := r.guard(func() {
		now, err := r.stat() // first: an event that the agent writes meanwhile must show in its position
		write := atomic.LoadUint64(r.write)
		started, r.err = err == nil && write == position && now.Changed != t, err
	})
	return err == nil && started
}
