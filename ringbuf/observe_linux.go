//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// maxCopy bounds what an observer copies at once, and so its memory, whatever
// the size of the ring.
const maxCopy = 64 << 10

// handCopies is hand for an observer. Nothing keeps the agent from overwriting
// a slot that its consumer has given back, so that slots are copied, and what
// the agent has come round to meanwhile is skipped. seen is how far ahead
// writePos was: it only grows, unless the agent has come round.
func (r *Reader) handCopies(n, seen int, fn func(Batch)) error {
	size := r.layout.EventSize()
	if r.copy == nil {
		r.copy = make([]uint64, min(len(r.slots), maxCopy)/8)
	}
	for n > 0 {
		run := min(r.run(n), len(r.copy)*8/size)
		slots := r.copySlots(int(r.next)*size, run*size)
		if !r.sameRing() {
			return r.restarted()
		}
		write := atomic.LoadUint64(&r.hdr.writePos) & r.mask
		ahead := r.distance(r.next, write)
		if ahead < seen {
			r.next = write
			return fmt.Errorf("ring %s: %w", r.path, ErrLapped)
		}
		fn(Batch{layout: r.layout, slots: slots})
		r.advance(run)
		n, seen = n-run, ahead-run
	}
	return nil
}

// copySlots copies n bytes of slots. It loads them atomically, as the agent
// may write at the same time, and as a load of writePos that follows must not
// come before them; both hold also on arm64.
func (r *Reader) copySlots(at, n int) []byte {
	from := unsafe.Slice((*uint64)(unsafe.Pointer(&r.slots[at])), n/8)
	for i := range from {
		r.copy[i] = atomic.LoadUint64(&from[i])
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(r.copy))), n)
}
