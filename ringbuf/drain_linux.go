//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Read hands the pending events to fn, oldest first, in batches, and at most
// limit of them (0 is no limit). It returns how many events stood in the ring
// when it looked, those that were read but not committed included.
//
// The error is [ErrRestarted], [ErrShrunk] or [ErrInvalid] where the ring has
// to be opened again, a [ForeignReadError] where the reader has gone on behind
// somebody else, and [ErrClosed]. Events that fn has seen are to be kept in
// every case.
//
// An observer copies the events first. Where the agent overwrites them
// meanwhile it leaves them out and returns [ErrLapped].
func (r *Reader) Read(limit int, fn func(Batch)) (fill int, err error) {
	if r.mem == nil {
		return 0, fmt.Errorf("read ring %s: %w", r.path, ErrClosed)
	}
	defer r.catch(debug.SetPanicOnFault(true), &err)
	s, err := r.look()
	if err != nil || s.pending == 0 {
		return s.fill, err
	}
	if s, err = r.examine(s); err != nil || s.pending == 0 {
		return s.fill, err
	}
	if !r.sameRun() {
		return s.fill, r.restarted()
	}
	n := s.pending
	if limit > 0 && n > limit {
		n = limit
	}
	if r.mode == Observe {
		return s.fill, r.handCopies(n, s.pending, fn)
	}
	r.hand(n, fn)
	r.moved()
	r.remember()
	return s.fill, nil
}

// ReadInto copies pending events to dst and returns their number. It commits
// nothing. The errors are those of [Reader.Read].
func (r *Reader) ReadInto(dst []Event) (n int, err error) {
	if len(dst) == 0 {
		return 0, nil
	}
	_, err = r.Read(len(dst), func(b Batch) {
		for i := range b.Len() {
			dst[n] = b.Event(i)
			n++
		}
	})
	return n, err
}

// catch turns a fault in mapped memory into an error. It must be deferred.
func (r *Reader) catch(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if v := recover(); v != nil {
		if !faultIn(r.mem, v) {
			panic(v)
		}
		*err = r.faulted()
	}
}

// faulted is why a page of the ring can't be had: the file has shrunk, or its
// file system has no room for a page that nobody has written yet.
func (r *Reader) faulted() error {
	if _, err := r.stat(); err != nil {
		return err
	}
	return fmt.Errorf("ring %s: a part that was never written can't be read: %w", r.path, unix.ENOSPC)
}

// hand passes n events on to fn, in place, in one batch or, where the ring
// wraps, in two.
func (r *Reader) hand(n int, fn func(Batch)) {
	size := r.layout.EventSize()
	for n > 0 {
		run := r.run(n)
		at := int(r.next) * size
		fn(Batch{layout: r.layout, slots: r.slots[at : at+run*size]})
		r.advance(run)
		n -= run
	}
}

// run is how many of n events lie before the end of the ring.
func (r *Reader) run(n int) int { return min(n, r.Capacity()-int(r.next)) }

func (r *Reader) advance(n int) { r.next = (r.next + uint64(n)) & r.mask }

// Commit gives the events that were read back to the agent as free slots. For
// an observer it does nothing.
//
// The error is [ErrRestarted] or a [ForeignReadError] where the ring isn't as
// this reader left it; nothing is stored then.
func (r *Reader) Commit() (err error) {
	switch {
	case r.mem == nil:
		return fmt.Errorf("commit ring %s: %w", r.path, ErrClosed)
	case r.mode == Observe || r.next == r.committed:
		return nil
	}
	defer r.catch(debug.SetPanicOnFault(true), &err)
	if _, err := r.look(); err != nil {
		return err
	}
	if r.committed == 0 {
		return r.commitFromZero()
	}
	return r.swap()
}

// swap stores the new position.
func (r *Reader) swap() error {
	// Release: the slots aren't looked at again. Pairs with the agent's
	// acquire load before it writes a slot. The swap fails where an agent has
	// started anew since, or somebody else reads.
	if !atomic.CompareAndSwapUint64(&r.hdr.readPos, r.committed, r.next) {
		_, err := r.look()
		return err
	}
	r.committed = r.next
	r.seen, r.seenTo = 0, 0
	r.moved()
	return nil
}

// commitFromZero commits from 0, the one position that an agent which starts
// anew stores itself, so that the swap can't tell it. It looks again after the
// swap, and undoes it on the ring of such an agent, which would seem full of
// old events.
func (r *Reader) commitFromZero() error {
	if !r.sameRun() {
		return r.restarted()
	}
	before, err := r.lastSlot()
	if err == nil {
		err = r.swap()
	}
	if err != nil || r.settled(before) {
		return err
	}
	atomic.CompareAndSwapUint64(&r.hdr.readPos, r.next, 0)
	return r.restarted()
}

// settled says whether the ring that a swap from 0 went to is still the one
// that was read, given the last slot as it was before.
//
// That agent's writePos was at next or beyond, and goes on from there. One that
// has started anew is behind next, as the ring is full for it there. So is one
// that used the room at once and has come round to the start; but that one has
// written the last slot, and hasn't set the file's size, as a start does. Both
// are asked, as the same event may stand in the last slot again, and a file
// system that writes a page back changes the file's time too.
func (r *Reader) settled(before slot) bool {
	if !r.sameRing() {
		return false
	}
	if atomic.LoadUint64(&r.hdr.writePos) >= r.next {
		return true
	}
	if now, err := r.lastSlot(); err != nil || now != before {
		return err == nil
	}
	st, err := r.stat()
	return err == nil && st.Ctim == r.changed
}

// slot is the bytes of one slot, of any layout.
type slot [maxEventSize]byte

// lastSlot is a copy of the slot that can't be pending while readPos is 0. It
// isn't read in place: it may never have been written, and on a full tmpfs such
// a page can't be had.
func (r *Reader) lastSlot() (s slot, err error) {
	size := r.layout.EventSize()
	n, err := unix.Pread(int(r.file.Fd()), s[:size], int64(len(r.mem)-size))
	if err != nil {
		return s, fmt.Errorf("ring %s: %w", r.path, err)
	}
	if n < size {
		return s, r.shrunk()
	}
	return s, nil
}
