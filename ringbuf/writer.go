// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"fmt"
	"math/bits"
	"sync/atomic"
)

// Writer is the agent's side of a ring. It is not safe for concurrent use, and a
// ring must have only one writer.
type Writer struct {
	ring

	// As for Reader: arguments and results of the function that runs under Guard.
	runPush func()
	events  []Event
	one     [1]Event
	n       int
}

// NewWriter creates a ring in memory: mem is the whole file and must be aligned to
// 8 bytes. The capacity must be a power of two. Most callers should use [Create].
func NewWriter(mem []byte, b Backing, l Layout, capacity int) (*Writer, error) {
	if err := checkRing(l, capacity); err != nil {
		return nil, err
	}
	if size := l.FileSize(uint64(capacity)); int64(len(mem)) != size || !aligned(mem) {
		return nil, fmt.Errorf("%w: %d bytes of memory for a ring of %d, or not aligned to 8 bytes", ErrInvalid, len(mem), size)
	}
	w := &Writer{ring: ringIn(mem, b, l, uint64(capacity)-1)}
	w.runPush = w.push
	if err := b.Guard(w.start); err != nil {
		return nil, err
	}
	return w, nil
}

func checkRing(l Layout, capacity int) error {
	switch {
	case !l.known():
		return fmt.Errorf("unknown layout %d", l)
	case capacity < 2 || capacity > MaxCapacity || bits.OnesCount(uint(capacity)) != 1:
		return fmt.Errorf("capacity %d is not a power of two from 2 to %d", capacity, MaxCapacity)
	}
	return nil
}

// start writes the header in the same order as NIXL's createCyclicBuffer and the
// constructor of bufferHeader (src/utils/common/cyclic_buffer.tpp, the same in
// 0.6.0, v1.1.0 and v1.4.0). Until it is complete, readers see version 0.
// expectedVersion comes last; no reader uses it.
func (w *Writer) start() {
	atomic.StoreUint64(w.write, 0)
	atomic.StoreUint64(w.read, 0)
	atomic.StoreInt32(w.version, 0)
	atomic.StoreUint64(w.capacity, w.mask+1)
	atomic.StoreUint64(word(w.mem, offMask), w.mask)
	atomic.StoreInt32(w.version, w.layout.Version())
	atomic.StoreInt32(half(w.mem, offExpectedVersion), w.layout.Version())
}

// Push writes one event to the ring. The error is [ErrFull], or wraps [ErrNoType],
// [ErrShrunk], [os.ErrClosed], or ENOSPC if the file system is full: a ring file is
// sparse and allocates pages on first use.
func (w *Writer) Push(e Event) error {
	w.one[0] = e
	n, err := w.PushBatch(w.one[:])
	if n == 0 && err == nil {
		return ErrFull
	}
	return err
}

// PushBatch writes events to the ring, in order, and publishes them one by one, like
// an agent that flushes its staging queue. It returns how many events it wrote. It
// stops when the ring is full, which is not an error, and with an [ErrNoType] at an
// event that the layout can't carry. Other errors are those of [Writer.Push].
func (w *Writer) PushBatch(events []Event) (n int, err error) {
	w.events, w.n = events, 0
	err = w.guard(w.runPush)
	w.events = nil
	return w.n, err
}

func (w *Writer) push() {
	// This writer is the only one that stores writePos.
	write := atomic.LoadUint64(w.write) & w.mask
	slots := Batch{w.layout, w.slots}
	for ; w.n < len(w.events); w.n++ {
		next := (write + 1) & w.mask
		// Acquire: pairs with the reader's release store after its last access to
		// the slot.
		if next == atomic.LoadUint64(w.read) {
			return
		}
		if w.err = slots.put(int(write), &w.events[w.n]); w.err != nil {
			return
		}
		// Release: the slot is written. Pairs with the reader's acquire load.
		atomic.StoreUint64(w.write, next)
		write = next
	}
}

// Len returns the number of events in the ring. The error wraps [os.ErrClosed] or
// [ErrShrunk].
func (w *Writer) Len() (n int, err error) {
	err = w.guard(func() { n = w.distance(atomic.LoadUint64(w.read), atomic.LoadUint64(w.write)) })
	return n, err
}
