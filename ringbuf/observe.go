// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "sync/atomic"

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
		run := min(r.contiguous(n), len(r.copy)*8/size)
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
		whole, err := r.written(slots)
		if err != nil {
			return err
		}
		if whole > 0 {
			r.fn(Batch{layout: r.layout, slots: slots[:whole*size]})
		}
		r.moveTo((r.next + uint64(run)) & r.mask)
		if whole < run {
			return ErrLapped
		}
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
