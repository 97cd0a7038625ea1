// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "sync/atomic"

// maxCopy limits what an observer copies at once, and so its memory, whatever
// the size of the ring.
const maxCopy = 64 << 10

// handCopies is hand for an observer. The agent may overwrite a slot that its
// consumer has committed. So slots are copied, and those that the agent may have
// overwritten meanwhile are left out. seen is how far ahead writePos was: the
// distance only grows, unless the agent has passed the observer.
func (r *Reader) handCopies(n, seen int) error {
	size := r.layout.EventSize()
	if r.copy == nil {
		r.copy = make([]uint64, min(len(r.slots), maxCopy)/8)
	}
	for n > 0 {
		run := min(r.run(n), len(r.copy)*8/size)
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

// lookBeside loads both positions of a ring that a consumer works on. Between
// two loads the consumer may pass the position of the agent that was loaded
// first, and an empty ring would seem full. After a few tries the last one is
// used.
func (r *Reader) lookBeside(read uint64) (s state) {
	const tries = 8
	for range tries {
		s = state{write: atomic.LoadUint64(r.write), read: read}
		if read = atomic.LoadUint64(r.words.read); read == s.read {
			break
		}
	}
	return s
}
