//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// state is a ring's state at one look, checked.
type state struct {
	write, read uint64
	fill        int // events in the ring
	pending     int // those of them that weren't read yet
}

// look checks the header and tells how many events stand in the ring and how
// many of them are new.
func (r *Reader) look() (state, error) {
	// Acquire: pairs with the agent's release store after it wrote the slot.
	// An agent that starts anew stores writePos before readPos; as this loads
	// them in the same order, a start in between shows as the old writePos
	// with the new readPos. The reverse, which looks like a ring full of
	// events, is left for a start caught at just one store: see examine.
	s := state{write: atomic.LoadUint64(&r.hdr.writePos), read: atomic.LoadUint64(&r.hdr.readPos)}
	if r.mode == Observe {
		s = r.lookBeside(s.read)
	}
	if !r.sameRing() {
		return state{}, r.restarted()
	}
	if s.write > r.mask || s.read > r.mask {
		return state{}, fmt.Errorf("ring %s: %w: write position %d or read position %d is beyond the last slot %d",
			r.path, ErrInvalid, s.write, s.read, r.mask)
	}
	s.fill, s.pending = r.distance(s.read, s.write), r.distance(r.next, s.write)
	if r.mode == Observe {
		return s, nil
	}
	switch {
	case s.read != r.committed && s.read == 0:
		return state{}, r.restarted()
	case s.read != r.committed:
		return state{}, r.foreign(s.read)
	case s.fill < r.Uncommitted():
		// The agent's position went back behind what was read.
		return state{}, r.restarted()
	}
	return s, nil
}

// lookBeside loads both positions of a ring that a consumer works on: between
// two loads it may pass the agent's position that was loaded first, and an
// empty ring would seem full. After a few tries the last one has to do.
func (r *Reader) lookBeside(read uint64) (s state) {
	const tries = 8
	for range tries {
		s = state{write: atomic.LoadUint64(&r.hdr.writePos), read: read}
		if read = atomic.LoadUint64(&r.hdr.readPos); read == s.read {
			break
		}
	}
	return s
}

// sameRing says whether the header still describes what was checked when the
// ring was opened.
func (r *Reader) sameRing() bool {
	return atomic.LoadInt32(&r.hdr.version) == r.layout.Version() &&
		atomic.LoadUint64(&r.hdr.capacity) == r.mask+1
}

// examine asks the file itself before its slots are believed. An agent that
// starts anew sets the file's size, which changes its time even where the size
// stays, and then rewrites the header, writePos first. Caught at that store,
// the ring looks as if it had just wrapped, with events pending that were read
// long ago.
//
// The time alone proves nothing: file systems also change it when a page is
// written for the first time in a while.
//
// To ask takes longer than to count a hundred events. Most passes need not: a
// position that isn't 0 is no start's, and the end of the file is there or not.
func (r *Reader) examine(s state) (state, error) {
	if s.write != 0 && r.committed != 0 && r.mode == Consume && r.endIsThere() {
		return s, nil
	}
	st, err := r.stat()
	if err != nil || st.Ctim == r.changed {
		return s, err
	}
	r.changed = st.Ctim
	if s.write == 0 {
		settle(r.hdr)
		if s, err = r.look(); err != nil {
			return s, err
		}
	}
	if r.mode == Observe && s.read == 0 && s.write < r.next {
		// Nothing of an observer's is in the header, so that it takes for a
		// start what it can't tell from a ring that wrapped.
		return s, r.restarted()
	}
	return s, nil
}

// endIsThere says whether the last page of the ring can be had. If not the file
// has shrunk; or else the page was never written, and a full tmpfs has none for
// it: then it doesn't tell, and isn't asked again.
func (r *Reader) endIsThere() (there bool) {
	if r.end == nil {
		return false
	}
	defer func() {
		if v := recover(); v != nil {
			if !faultIn(r.mem, v) {
				panic(v)
			}
			r.end = nil
		}
	}()
	atomic.LoadUint64(r.end)
	return true
}

// settle gives an agent that is rewriting its header the time for it, which is
// a few stores. It is a variable for a test to finish them in it.
var settle = func(h *header) {
	const looks = 1000 // about a microsecond
	for range looks {
		atomic.LoadUint64(&h.readPos)
	}
}

// stat asks for the file's size and time. A size that isn't the ring's any
// more is an error: slots beyond the end are gone, and those before it may
// have been cleared or be another layout's.
func (r *Reader) stat() (st unix.Stat_t, err error) {
	if err := unix.Fstat(int(r.file.Fd()), &st); err != nil {
		return st, fmt.Errorf("ring %s: %w", r.path, err)
	}
	switch size := int64(len(r.mem)); {
	case st.Size < size:
		return st, r.shrunk()
	case st.Size > size:
		return st, r.restarted()
	}
	return st, nil
}

func (r *Reader) restarted() error {
	return fmt.Errorf("ring %s: %w", r.path, ErrRestarted)
}

func (r *Reader) shrunk() error {
	return fmt.Errorf("ring %s: %w; it is opened again when its agent has made it anew", r.path, ErrShrunk)
}

// foreign follows another consumer: the agent may overwrite what lies behind
// its position. What was read already isn't read again.
func (r *Reader) foreign(read uint64) error {
	from := r.committed
	if r.distance(from, read) > r.Uncommitted() {
		r.next = read
	}
	r.committed = read
	r.moved()
	return fmt.Errorf("ring %s: %w", r.path, &ForeignReadError{From: from, To: read})
}
