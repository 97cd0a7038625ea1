// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"sync/atomic"
)

// An agent that restarts on its ring, step by step, and what a consumer makes
// of the ring after each step. The agent can be preempted, or die, between any
// two. c is the position that this reader committed, n the one it has read to.
//
//	step                  what a reader sees
//	ftruncate             the file's time moves, also if the size stays; a smaller file
//	                      is ErrShrunk where its lost part is needed. What is pending are
//	                      events of the old run: they are read
//	writePos = 0          c = 0 < n: writePos is behind what was read, ErrRestarted
//	                      c ≠ 0: the ring seems to have wrapped, with events pending up to
//	                      its end. See below
//	readPos = 0           c ≠ 0: ErrRestarted if the file's time has changed; otherwise
//	                      another consumer stopped at 0
//	version = 0           ErrRestarted
//	capacity, mask        ErrRestarted
//	version = V           as after readPos = 0; c = n = 0: nothing was read of the old run,
//	                      and the reader continues with the new one
//	events                c = 0 < n: what was read is overwritten, ErrRestarted
//
// A layout with another header stores readPos and capacity elsewhere; then
// version or capacity contradict what was opened, ErrRestarted.
//
// writePos = 0 with c ≠ 0 is the one ambiguous state. A reader believes it if
//   - the file's time is the one of an earlier sample after which the agent
//     pushed: between the two there was no ftruncate, and so no restart; or
//   - a slot at the end of the ring was written since this reader last passed it
//     (see lastChanged): the agent writes slots in order, so that it has pushed
//     all slots before that one in this round. These are believed, and so is the
//     last slot of the ring once the file's time is a second old.
//
// Otherwise nothing is pending until the header moves on. A full ring, where the
// agent waits for room, is believed once the file's time is a second old. The time
// alone isn't enough to reject: file systems also change it when they write a page
// back.
//
// OpenReader has no earlier look to compare with. In this state it returns
// ErrNotReady to a consumer until the file's time is a second old. An observer
// commits nothing and believes it.

// tailSlots is the number of slots before the end of a ring that are remembered.
const tailSlots = 64

// maxAlike is how many slots at the end of a ring may be the same as a lap before
// although the agent has written them. The last events of each transfer are usually
// its size and the number 1.
const maxAlike = 3

// settleTime is how old the file's time must be to open a ring in the ambiguous
// state. A restarting agent is there for one store.
const settleTime = 1e9 // ns

// stamp is a time of the file's last change.
type stamp struct {
	changed int64
	write   uint64 // writePos, loaded after changed
	pushed  bool   // the agent has pushed since: it wasn't between two steps of a restart
}

func firstStamp(h *Header, state FileState, mode Mode) (stamp, error) {
	s := stamp{changed: state.Changed, write: h.WritePos}
	if h.WritePos == 0 && h.ReadPos != 0 {
		if mode == Consume && state.Age < settleTime {
			return s, fmt.Errorf("%w: its agent is restarting, or has just filled it to the end", ErrNotReady)
		}
		s.pushed = true
	}
	return s, nil
}

// state is a ring's state at one look, checked.
type state struct {
	write, read uint64
	fill        int // events in the ring
	pending     int // those of them that weren't read yet
}

// look checks the header, and counts the events in the ring and the new ones.
func (r *Reader) look() (state, error) {
	// Acquire: pairs with the agent's release store after it wrote the slot.
	// A restart stores writePos before readPos. As this loads them in the same
	// order, a restart in between shows as the old writePos with readPos 0.
	s := state{write: atomic.LoadUint64(r.write), read: atomic.LoadUint64(r.read)}
	if r.mode == Observe {
		s = r.lookBeside(s.read)
	}
	if !r.is(r.layout.Version(), r.mask+1) {
		return state{}, ErrRestarted
	}
	if s.write > r.mask || s.read > r.mask {
		return state{}, fmt.Errorf("%w: write position %d or read position %d is beyond the last slot %d",
			ErrInvalid, s.write, s.read, r.mask)
	}
	s.fill, s.pending = r.distance(s.read, s.write), r.distance(r.next, s.write)
	if r.mode == Observe {
		return s, nil
	}
	// A restart resets readPos before the next push. So this push is of the run that
	// was read, unless readPos, which was loaded after it, is 0 and something was read.
	if s.write != 0 && s.write != r.lastWrite && (s.read != 0 || r.committed == 0 && r.next == 0) {
		r.sampled.pushed = true
	}
	r.lastWrite = s.write
	if s.read != r.committed {
		return state{}, r.readElsewhere(s)
	}
	if s.fill < r.Uncommitted() {
		return state{}, ErrRestarted
	}
	return s, nil
}

// believe returns how many of the pending events of a look are certainly events
// of this run.
func (r *Reader) believe(s state) (state, error) {
	switch {
	case s.write == 0 && (r.committed != 0 || r.mode == Observe):
		return r.believeAtZero(s)
	case r.mode == Observe:
		return s, r.checkObserved(s)
	case r.committed == 0:
		// Positions don't show a restart here. The size does, of another layout.
		if _, err := r.stat(); err != nil {
			return s, err
		}
		if !r.sameRun() {
			return s, ErrRestarted
		}
	}
	return s, nil
}

func (r *Reader) believeAtZero(s state) (state, error) {
	now, err := r.stat()
	if err != nil || r.sampled.pushed && now.Changed == r.sampled.changed {
		return s, err
	}
	if r.mode == Observe && s.read == 0 && now.Changed != r.sampled.changed {
		return s, ErrRestarted
	}
	if s.fill == int(r.mask) && now.Age >= settleTime {
		return s, nil // the header of a full ring never moves on by itself
	}
	// The agent pushes a slot before it writes the next. Whether it pushed the
	// last slot that it wrote isn't known at once: it may have died before, and
	// restarted. A ring of two slots has no other.
	proven := int(r.lastChanged())
	if proven <= int(r.mask) || now.Age < settleTime && r.mask > 1 {
		proven--
	}
	s.pending = max(0, proven-int(r.next))
	return s, nil
}

// lastChanged returns the slot after the last one that was certainly written since
// this reader passed it, 0 if there is none. Bytes that became 0 don't count: they
// are there after the file was truncated and extended, and where an agent of a
// layout with a larger header began to reset it.
func (r *Reader) lastChanged() uint64 {
	size := r.layout.EventSize()
	for at, b := range slices.Backward(r.slots[len(r.slots)-len(r.tail):]) {
		if b != 0 && b != r.tail[at] {
			return r.mask + 1 - uint64((len(r.tail)-1-at)/size)
		}
	}
	return 0
}

// rememberTail copies the slots before the end of the ring, as they are when the
// reader passes them. On a full file system it may be impossible to read a page
// that was never written. Then nothing is remembered, and proves nothing.
func (r *Reader) rememberTail() {
	r.tail = r.tail[:cap(r.tail)]
	if r.backing.Guard(r.runTail) != nil {
		r.tail = r.tail[:0]
	}
}

// startLap is called when reading begins at position 0, or at that of another
// consumer. It may be the first lap of another run: if nothing was read of the one
// before, nothing showed the restart.
func (r *Reader) startLap() {
	r.rememberTail() // what is there now is of an earlier lap or run, or about to be read
	if now, err := r.stat(); err == nil && now.Changed != r.sampled.changed {
		// A push between the look and the sample doesn't show that the agent wasn't
		// restarting at the sample, one after it does.
		r.lastWrite = atomic.LoadUint64(r.write)
		r.sampled = stamp{changed: now.Changed, write: r.lastWrite}
	}
}

func (r *Reader) copyTail() { copy(r.tail, r.slots[len(r.slots)-len(r.tail):]) }

// checkObserved is for an observer, which has no position in the header. Unless the
// file's time shows that no agent has restarted, the slots must show that the run
// which was read goes on: the end of the ring, if the agent has wrapped since the
// last look, or else what was read last.
func (r *Reader) checkObserved(s state) error {
	now, err := r.stat()
	if err != nil {
		return err
	}
	same := now.Changed == r.sampled.changed
	wrapped := s.write < r.next
	switch {
	case same && (r.sampled.pushed || wrapped && r.lastWrite < r.next && r.lastWrite <= s.write):
	case wrapped && !r.wroteToTheEnd(), !wrapped && r.checksum(0, r.seenTo) != r.seen:
		return ErrRestarted
	}
	r.lastWrite = s.write
	if !same {
		r.sampled = stamp{changed: now.Changed, write: s.write}
	} else if s.write != r.sampled.write {
		r.sampled.pushed = true
	}
	return nil
}

// wroteToTheEnd reports whether the agent has written the slots from the next one to
// the end of the ring, as far as these differ from the lap before.
func (r *Reader) wroteToTheEnd() bool {
	last := r.lastChanged()
	return last > r.next && last+maxAlike > r.mask
}

// stat asks for the file's state. Another size is an error: slots may be gone,
// or another layout's.
func (r *Reader) stat() (FileState, error) {
	s, err := r.backing.Stat()
	switch size := int64(len(r.mem)); {
	case err != nil:
		return s, err
	case s.Size < size:
		return s, ErrShrunk
	case s.Size > size:
		return s, ErrRestarted
	}
	return s, nil
}

// unchanged reports whether certainly no agent has restarted since the sample.
func (r *Reader) unchanged() bool {
	now, err := r.stat()
	return err == nil && r.sampled.pushed && now.Changed == r.sampled.changed
}

// readElsewhere follows a read position that somebody else has stored.
//
// Two readers that pop at the same time can also move it backward: the other one
// stores a position that it has loaded before this reader's last commit. That is
// put right, so that no event is handed out twice. Modulo the capacity, a position
// within the last commit could also be one that moved forward by nearly a whole
// lap. A wrong guess loses events, which is what foreign reads do.
func (r *Reader) readElsewhere(s state) error {
	if s.read == 0 {
		// A restart also changes the file's time. If it did so just before the ring
		// was opened, the next look sees the rest of it.
		if now, err := r.stat(); err != nil || now.Changed != r.sampled.changed {
			return ErrRestarted
		}
	}
	from := r.committed
	forward := r.distance(from, s.read)
	if r.distance(s.read, from) <= r.distance(r.previous, from) {
		if _, err := r.swap(s.read, from); err != nil {
			return err
		}
		return &ForeignReadError{From: from, To: s.read}
	}
	if forward > r.Uncommitted() {
		r.moveTo(s.read)
		r.startLap()
	}
	r.previous, r.committed = s.read, s.read
	r.seen, r.seenTo = 0, 0
	return &ForeignReadError{From: from, To: s.read}
}

// swap moves readPos, and reports whether it did. It fails if an agent has
// restarted since the last look, or another reader has moved readPos.
//
// From 0 it can't fail that way, as 0 is what a restarting agent stores. Then the
// ring is looked at again, and the swap is undone on the ring of such an agent,
// which would seem full of old events.
func (r *Reader) swap(from, to uint64) (bool, error) {
	// Release: the slots aren't looked at again. Pairs with the agent's acquire
	// load before it writes a slot.
	if !atomic.CompareAndSwapUint64(r.read, from, to) {
		return false, nil
	}
	if r.is(r.layout.Version(), r.mask+1) && (from != 0 || r.ranOn(to)) {
		return true, nil
	}
	atomic.CompareAndSwapUint64(r.read, to, from)
	return false, ErrRestarted
}

// ranOn reports whether the ring, whose readPos was just moved from 0 to a
// position, is of the run that was read.
//
// The agent of that run was at the position or beyond, and what was read is still
// there, unless the agent has used the room at once and wrapped. Then the file's
// time shows that it didn't restart, or the last slot, which it can't have written
// while readPos was 0.
func (r *Reader) ranOn(to uint64) bool {
	if r.committed != 0 { // this puts right what a foreign reader stored
		return r.unchanged()
	}
	return atomic.LoadUint64(r.write) >= to && r.sameRun() || r.unchanged() || r.lastChanged() > r.mask
}

// rememberRun keeps a checksum of what was read last, as long as readPos doesn't
// show a restart.
func (r *Reader) rememberRun() {
	if r.committed == 0 || r.mode == Observe {
		r.seen, r.seenTo = r.checksum(0, r.next), r.next
	}
}

// sameRun reports whether what was read is still in the ring. With readPos 0,
// positions don't distinguish a restarted agent that has written as much as was
// read. But it has overwritten what was read, and the old run can't have.
func (r *Reader) sameRun() bool {
	return r.committed != 0 || r.seenTo == 0 || r.checksum(0, r.seenTo) == r.seen
}

// maxFingerprint limits the slots that a checksum covers: those of some
// transfers, with the microseconds that they took.
const maxFingerprint = 64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is of the newest slots between two positions.
func (r *Reader) checksum(from, to uint64) (sum uint32) {
	size := uint64(r.layout.EventSize())
	if n := uint64(r.distance(from, to)); n > maxFingerprint {
		from = (to - maxFingerprint) & r.mask
	}
	for from != to {
		end := to
		if end < from {
			end = r.mask + 1
		}
		sum = crc32.Update(sum, castagnoli, r.slots[from*size:end*size])
		from = end & r.mask
	}
	return sum
}

// written returns how many of the slots from the next one on, or of copies of
// them, hold events.
//
// A file that was cut within its last page raises no fault: what is gone reads as
// zeros, and only the file's size shows it. A file that was cut and extended again
// has its old size and zeros at its end, which are no events if the file has
// changed.
func (r *Reader) written(slots []byte) (int, error) {
	size := r.layout.EventSize()
	n := len(slots) / size
	last := slots[(n-1)*size:]
	fromEnd := len(r.slots) - int(r.next)*size - len(slots)
	if fromEnd >= len(r.mem)%pageSize && !isZero(last) {
		return n, nil
	}
	now, err := r.stat()
	if err != nil || now.Changed == r.sampled.changed {
		return n, err
	}
	for n > 0 && isZero(slots[(n-1)*size:n*size]) {
		n--
	}
	return n, nil
}

// pageSize is the size of the pages that files are mapped in.
var pageSize = os.Getpagesize()

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
