// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"sync/atomic"
)

// maxCopy limits the number of bytes that an observer copies at once, and so its
// memory use, independently of the ring's size.
const maxCopy = 64 << 10

// deliverCopies is deliver for an observer. The agent may overwrite a slot once its
// consumer has committed it. So deliverCopies copies slots and omits those that the
// agent may have overwritten during the copy. seen is the earlier distance to
// writePos. The distance only grows, unless the agent has lapped the observer.
func (r *Reader) deliverCopies(n, seen int) error {
	size := r.layout.EventSize()
	if r.copy == nil {
		r.copy = make([]uint64, min(len(r.slots), maxCopy)/8)
	}
	for n > 0 {
		run := min(n, r.Capacity()-int(r.next), len(r.copy)*8/size)
		slots := copyWords(r.copy, r.slots, int(r.next)*size, run*size)
		if !r.is(r.layout.Version(), r.mask+1) {
			return ErrRestarted
		}
		write := atomic.LoadUint64(r.write) & r.mask
		ahead := r.distance(r.next, write)
		if ahead < seen {
			r.moveTo(write)
			return ErrLapped
		}
		if err := r.written(slots); err != nil {
			return err
		}
		r.fn(Batch{layout: r.layout, slots: slots})
		r.moveTo((r.next + uint64(run)) & r.mask)
		n, seen = n-run, ahead-run
	}
	return nil
}

// loadBoth loads both positions of a ring that has a consumer. Between the two
// loads, the consumer may pass the writePos that was loaded first, and an empty
// ring would look full. So loadBoth repeats the loads until readPos is stable, or
// uses the result of the last try.
func (r *Reader) loadBoth(read uint64) (s state) {
	const tries = 8
	for range tries {
		s = state{write: atomic.LoadUint64(r.write), read: read}
		if read = atomic.LoadUint64(r.words.read); read == s.read {
			break
		}
	}
	return s
}

// checkObserved detects restarts for an observer, which has no position in the
// header. Unless ctime proves that no agent has restarted, the slots must prove
// that the same run continues: the end of the ring must have changed if the agent
// has wrapped since the last look; otherwise the last slots that were read must be
// the same. A new ctime is believed once it is a second old: the agent may change it
// before it resets the header.
func (r *Reader) checkObserved(s state, now FileState) error {
	wrapped := s.write < r.next
	switch { // on arm64, a slot can be visible before an earlier one, but not for long
	case now.Changed == r.sampled:
	case wrapped && !r.wroteToTheEnd(), !wrapped && r.checksum(0, r.seenTo) != r.seen:
		return ErrRestarted
	case now.Age >= settleTime:
		r.sampled = now.Changed
	}
	return nil
}

// tailSlots is the number of slots at the end of a ring that an observer remembers: those of
// one transfer. Its last events are usually the same, its size and the number 1.
const tailSlots = 4

// rememberTail copies the slots at the end of the ring when an observer passes them. If
// the file has shrunk, the copy is empty.
func (r *Reader) rememberTail() {
	n := cap(r.tail) / r.layout.EventSize()
	r.tail = r.tail[:0]
	_ = r.backing.Guard(func() {
		slots, _ := r.peek(r.Capacity()-n, n)
		r.tail = append(r.tail, slots...)
	})
}

// wroteToTheEnd reports whether the agent has written the slots from the next one to the
// end of the ring since the observer passed them. Zeros don't count: truncating and extending
// the file produces them.
func (r *Reader) wroteToTheEnd() bool {
	unread := (r.Capacity() - int(r.next)) * r.layout.EventSize()
	before := r.tail[max(0, len(r.tail)-unread):]
	n := len(r.tail) / r.layout.EventSize()
	now, _ := r.peek(r.Capacity()-n, n) // nil if the file has shrunk
	if len(now) < len(before) || len(before) == 0 || isZero(now[len(now)-r.layout.EventSize():]) {
		return false
	}
	return !bytes.Equal(now[len(now)-len(before):], before)
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
