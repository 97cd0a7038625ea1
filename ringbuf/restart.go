// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"sync/atomic"
)

// The table shows each step of an agent that restarts on its ring, and what a
// consumer sees after the step. The agent can be preempted or exit between any two
// steps. c is the position that this reader has committed, n the position that it
// has read up to. "ctime" is the time of the file's last change.
//
//	step                  what a reader sees
//	ftruncate             ctime changes, even if the size doesn't. If the file is smaller,
//	                      access to the missing part is ErrShrunk. Pending events belong
//	                      to the old run and are read
//	writePos = 0          c = 0 < n: writePos is behind n, ErrRestarted
//	                      c ≠ 0: the ring seems to have wrapped, with events pending up to
//	                      its end. See below
//	readPos = 0           c ≠ 0: ErrRestarted if ctime has changed; otherwise another
//	                      consumer stored 0
//	version = 0           ErrRestarted
//	capacity, mask        ErrRestarted
//	version = V           same as after readPos = 0. If c = n = 0, the reader had read
//	                      nothing of the old run and continues with the new one
//	events                c = 0 < n: the agent overwrites slots that were read, ErrRestarted
//
// If the new layout has another header, the agent stores readPos and capacity at
// other offsets. Then version or capacity differs from the opened ring: ErrRestarted.
//
// Only writePos = 0 with c ≠ 0 is ambiguous. A reader accepts the pending events if
//   - ctime equals that of an earlier sample, and the agent has pushed since that
//     sample: there was no ftruncate, and so no restart; or
//   - ctime is a second old. A restarting agent makes its next store within
//     nanoseconds, unless it is preempted.
//
// Otherwise nothing is pending. A new ctime alone doesn't prove a restart, because file
// systems also change it when they write a page back. OpenReader has no earlier sample to
// compare with. In the ambiguous state, it returns ErrNotReady to a consumer until ctime
// is a second old. It accepts the state for an observer, which commits nothing.
//
// No conclusion depends on the order in which slots become visible, which arm64 doesn't
// define.

// settleTime is the age of ctime from which on a reader believes an ambiguous header.
const settleTime = 1e9 // ns

// stamp is a sample of the file's ctime.
type stamp struct {
	changed int64
	write   uint64 // writePos, loaded after changed
	pushed  bool   // the agent has pushed since, so it wasn't restarting at the sample
}

func firstStamp(h *Header, state FileState, mode Mode) (stamp, error) {
	s := stamp{changed: state.Changed, write: h.WritePos}
	if h.WritePos == 0 && h.ReadPos != 0 {
		if mode == Consume && state.Age < settleTime {
			return s, fmt.Errorf("%w: the agent is restarting, or has just written the last slot", ErrNotReady)
		}
		s.pushed = true
	}
	return s, nil
}

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
	// A restart resets readPos before the next push. So this push belongs to the run
	// that was read, unless readPos, which was loaded later, is 0 although the reader
	// has read events.
	if s.write != 0 && s.write != r.lastWrite && (s.read != 0 || r.committed == 0 && r.next == 0) {
		r.sampled.pushed = true
	}
	r.lastWrite = s.write
	if s.read != r.committed {
		return state{}, r.followForeign(s)
	}
	if s.fill < r.Uncommitted() {
		return state{}, ErrRestarted
	}
	return s, nil
}

// load loads and checks the header. If an agent restarts with another layout, its capacity may
// be where readPos was, and on arm64, it may be visible before its version. So a readPos that
// another process has stored and a position beyond the last slot are loaded again for about
// a microsecond.
func (r *Reader) load() (s state, err error) {
	const tries = 100
	for range tries {
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
		if s.write <= r.mask && (s.read == r.committed || s.read == 0 || r.mode == Observe && s.read <= r.mask) {
			return s, nil
		}
	}
	if s.write > r.mask || s.read > r.mask {
		return state{}, fmt.Errorf("%w: write position %d or read position %d is beyond the last slot %d", ErrInvalid, s.write, s.read, r.mask)
	}
	return s, nil
}

// verify reduces the pending events of a look to those that certainly belong to
// this run.
func (r *Reader) verify(s state) (state, error) {
	switch {
	case s.write == 0 && (r.committed != 0 || r.mode == Observe):
		return r.verifyAtZero(s)
	case r.mode == Observe:
		return s, r.checkObserved(s)
	case r.committed == 0:
		// Positions don't show a restart here. A new size shows a new layout.
		now, err := r.stat()
		if err != nil {
			return s, err
		}
		r.firstChanged = now.Changed
		if !r.sameRun() {
			return s, ErrRestarted
		}
	}
	return s, nil
}

func (r *Reader) verifyAtZero(s state) (state, error) {
	now, err := r.stat()
	same := err == nil && now.Changed == r.sampled.changed
	switch {
	case err != nil:
		return s, err
	case r.mode == Observe && s.read == 0 && !same:
		return s, ErrRestarted
	case now.Age < settleTime && (!same || !r.sampled.pushed):
		s.pending = 0
	default:
		r.endChanged = now.Changed
	}
	return s, nil
}

// startLap is called when reading begins at position 0, or at the position of
// another consumer. This may be the first lap of a new run: if nothing of the old
// run was read, the restart was undetectable.
func (r *Reader) startLap() {
	now, err := r.stat()
	if err == nil && r.endChanged != 0 && now.Changed != r.endChanged {
		r.mayHaveRestarted = true
	}
	if err == nil && now.Changed != r.sampled.changed {
		r.sampled = stamp{changed: now.Changed, write: r.lastWrite}
	}
}

// checkObserved detects restarts for an observer, which has no position in the
// header. Unless ctime proves that no agent has restarted, the slots must prove
// that the same run continues: the end of the ring must have changed if the agent
// has wrapped since the last look; otherwise the last slots that were read must be
// the same.
func (r *Reader) checkObserved(s state) error {
	now, err := r.stat()
	if err != nil {
		return err
	}
	same := now.Changed == r.sampled.changed
	wrapped := s.write < r.next
	switch { // on arm64, a slot can be visible before an earlier one, but not for long
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

// tailSlots is the number of slots at the end of a ring that a reader remembers: those of
// one transfer. Its last events are usually the same, its size and the number 1.
const tailSlots = 4

// rememberTail copies the slots at the end of the ring when the reader passes them. If
// the file has shrunk, the copy is empty.
func (r *Reader) rememberTail() {
	r.tail = r.tail[:cap(r.tail)]
	if r.backing.Guard(r.runTail) != nil {
		r.tail = r.tail[:0]
	}
}

func (r *Reader) copyTail() { r.tail = r.tail[:copy(r.tail, r.ending())] }

// wroteToTheEnd reports whether the agent has written the slots from the next one to the
// end of the ring since the reader passed them.
func (r *Reader) wroteToTheEnd() bool {
	unread := (r.Capacity() - int(r.next)) * r.layout.EventSize()
	return r.wroteLast(r.tail[max(0, len(r.tail)-unread):])
}

// wroteLast reports whether the last slots of the ring were written since the reader
// passed them. Zeros don't count: truncating and extending the file produces them.
func (r *Reader) wroteLast(before []byte) bool {
	now := r.ending()
	if len(now) < len(before) || len(before) == 0 || isZero(now[len(now)-r.layout.EventSize():]) {
		return false
	}
	return !bytes.Equal(now[len(now)-len(before):], before)
}

// stat returns the file's state. A changed size is an error: slots may be missing,
// or belong to another layout.
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

// unchanged reports whether it is certain that no agent has restarted since the
// sample.
func (r *Reader) unchanged() bool {
	now, err := r.stat()
	return err == nil && r.sampled.pushed && now.Changed == r.sampled.changed
}

// followForeign adopts a read position that another process has stored, and skips the events
// that it has taken.
//
// The other process can also move the position backward: it may store a position
// that is based on a load from before this reader's last commit. The events from there on
// aren't read again, only committed again. Modulo the capacity, such a position could also
// result from a move forward. It does if it is one of a pending event, also after a restart.
func (r *Reader) followForeign(s state) error {
	if s.read == 0 && !r.unchanged() {
		return ErrRestarted // possibly of an agent that had changed ctime before the ring was opened
	}
	from, to := r.committed, s.read
	isPending, isBefore := r.distance(r.next, to) <= s.pending, r.distance(to, from) <= r.distance(r.previous, from)
	if r.distance(from, to) > r.Uncommitted() && (isPending || !isBefore) {
		r.moveTo(to)
		r.startLap()
	}
	r.previous, r.committed = to, to
	r.seen, r.seenTo = 0, 0
	return foreignRead(from, to)
}

// swap moves readPos, and reports whether it did. It fails if an agent has
// restarted since the last look, or if another process has moved readPos.
//
// If from is 0, the compare-and-swap can't detect a restart, because a restarting
// agent also stores 0. So swap checks the ring again afterwards. If an agent has
// restarted, it undoes the swap; otherwise the ring would look full of old events.
func (r *Reader) swap(from, to uint64) (bool, error) {
	// Release: the reader doesn't access the slots again. Pairs with the agent's
	// acquire load before it writes a slot.
	if !atomic.CompareAndSwapUint64(r.read, from, to) {
		return false, nil
	}
	if r.holds(from, to) {
		return true, nil
	}
	return false, ErrRestarted
}

// holds reports whether a swap moved readPos in the run that was read. Otherwise, it undoes the
// swap. A swap to 0 isn't undone: it would also undo the 0 that an agent has stored since.
func (r *Reader) holds(from, to uint64) bool {
	if r.is(r.layout.Version(), r.mask+1) && (from != 0 || r.continued(to)) {
		return true
	}
	if to != 0 {
		atomic.CompareAndSwapUint64(r.read, to, from)
	}
	return false
}

// continued reports whether the ring still belongs to the run that was read, after
// readPos was moved from 0 to the given position.
//
// If so, writePos is at that position or beyond it, and the slots that were read
// are unchanged, unless the agent has already wrapped and reused them. In that
// case, ctime proves that the agent didn't restart, or the last slots do: they were
// unchanged just before.
func (r *Reader) continued(to uint64) bool {
	return atomic.LoadUint64(r.write) >= to && r.sameRun() || r.unchanged() || r.wroteLast(r.tail)
}

// rememberRun keeps a checksum of the slots that were read, as long as readPos can't
// show a restart. It adds only the slots that were read since the last call.
func (r *Reader) rememberRun() {
	switch {
	case r.mode == Observe:
		r.seen, r.seenTo = r.checksum(0, r.next), r.next
	case r.committed == 0:
		if r.next < r.seenTo {
			r.seen, r.seenTo = 0, 0
		}
		r.seen, r.seenTo = r.extend(r.seen, r.seenTo, r.next), r.next
	}
}

// sameRun reports whether the slots that were read are unchanged. While readPos is
// 0, the positions are the same for a restarted agent that has written as many
// events as were read. But only a restarted agent can have overwritten those slots.
func (r *Reader) sameRun() bool {
	return r.committed != 0 || r.seenTo == 0 || r.checksum(0, r.seenTo) == r.seen
}

// maxFingerprint limits the number of slots that a checksum covers, where a restart
// also shows in the positions.
const maxFingerprint = 64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns a checksum of the slots between two positions. From position 0, a
// consumer needs all of them, because nothing else may show a restart: two runs of
// equal length can also end with the same events. Otherwise, it covers the newest ones.
func (r *Reader) checksum(from, to uint64) uint32 {
	if (from != 0 || r.mode == Observe) && r.distance(from, to) > maxFingerprint {
		from = (to - maxFingerprint) & r.mask
	}
	return r.extend(0, from, to)
}

// extend returns the checksum sum, extended by the slots between two positions.
func (r *Reader) extend(sum uint32, from, to uint64) uint32 {
	size := uint64(r.layout.EventSize())
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

// written returns how many of slots, which start at next, hold events. slots may be
// a copy.
//
// Truncating a file within its last page causes no fault: the missing part reads as
// zeros, and only the file's size shows the truncation. A file that was truncated
// and extended again has its old size and zeros at its end. If ctime has changed,
// these zeros are not events.
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

// pageSize is the page size of file mappings.
var pageSize = os.Getpagesize()

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
