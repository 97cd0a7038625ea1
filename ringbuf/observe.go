// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"sync/atomic"
)

// checkCopy returns an error if the agent may have overwritten slots while an observer copied
// n of them, because the agent's consumer had committed them. The distance to writePos only
// grows, unless the agent has lapped the observer.
func (r *Reader) checkCopy(n int) error {
	if !r.is(r.layout.Version(), r.mask+1) {
		return ErrRestarted
	}
	write := atomic.LoadUint64(r.write) & r.mask
	ahead := r.distance(r.next, write)
	if ahead < r.pass.ahead {
		return r.lapped(write)
	}
	r.pass.ahead = ahead - n
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

// checkObserved detects restarts for an observer, which has no position in the header. If the
// agent seems to have wrapped, the end of the ring must have changed since the observer passed
// it. Otherwise, the last slots that were read must be the same. If not, the agent has restarted
// or has lapped the observer. Only a ring whose read position is 0 can't have been lapped.
func (r *Reader) checkObserved(s state) error {
	switch wrapped := s.write < r.next; {
	case wrapped && !r.wroteToTheEnd(), !wrapped && s.read == 0 && r.checksum(r.sumTo) != r.sum:
		return ErrRestarted
	case !wrapped && r.checksum(r.sumTo) != r.sum:
		return r.lapped(s.write)
	}
	return nil
}

// lapped skips the events that an observer has missed.
func (r *Reader) lapped(write uint64) error {
	r.moveTo(write)
	r.rememberRun()
	return ErrLapped
}

// tailSlots is the number of slots at the end of a ring that an observer remembers: those of
// four transfers. If all are the same as in the lap before, the agent hasn't written them again.
const tailSlots = 16

// rememberTail copies the slots at the end of the ring when an observer passes them. If
// the file has shrunk, the copy is empty.
func (r *Reader) rememberTail() {
	r.tail = r.tail[:0]
	if r.Capacity() >= tailSlots {
		_ = r.backing.Guard(func() {
			slots, _ := r.peek(r.Capacity()-tailSlots, tailSlots)
			r.tail = append(r.tail, slots...)
		})
	}
}

// wroteToTheEnd reports whether the agent has written the slots at the end of the ring since the
// observer passed them. Zeros don't count: truncating and extending the file produces them. An
// observer that hasn't passed the end, or is close to it, can't know.
func (r *Reader) wroteToTheEnd() bool {
	if len(r.tail) == 0 || r.Capacity()-int(r.next) < tailSlots {
		return true
	}
	now, err := r.peek(r.Capacity()-tailSlots, tailSlots)
	return err == nil && !isZero(now[len(now)-r.layout.EventSize():]) && !bytes.Equal(now, r.tail)
}

// peek returns slots that weren't read: in place if they were written, and as a copy
// otherwise.
func (r *Reader) peek(slot, n int) ([]byte, error) {
	at, end := r.offset(slot), r.offset(slot+n)
	file, ok := r.backing.(fileBacking)
	if !ok || !file.charges() || end <= r.extent.allocated {
		return r.mem[at:end], nil
	}
	return readAt(file.file(), at, end-at) // read(2) doesn't allocate pages
}
