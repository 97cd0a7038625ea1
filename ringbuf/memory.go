// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Backing is the file behind a ring's memory, as far as the protocol needs it.
// [OpenReader] and [Create] provide their own. Tests and simulators that keep a
// ring in plain memory implement it in a few lines.
type Backing interface {
	// Stat returns the file's state.
	Stat() (FileState, error)
	// Now returns the current time. Only differences matter.
	Now() time.Time
	// Guard runs fn. A fault in the ring's memory ends fn; Guard then returns
	// an error that wraps [ErrShrunk] or ENOSPC. Other panics propagate.
	Guard(fn func()) error
}

// FileState is the part of a ring file's metadata that the protocol needs.
type FileState struct {
	Size      int64 // bytes
	Allocated int64 // bytes that take space; a sparse file has fewer than Size

	Dev, Ino uint64 // identify the file; 0 for memory
}

// fileBacking is the Backing of a ring that OpenReader opened.
type fileBacking interface {
	Backing
	file() *os.File
	charges() bool    // whether reading a hole allocates memory
	closeFile() error // leaves the file mapped
	Close() error
}

// ring is an open ring, without what is specific to a Reader or a Writer. What [Reader.Idle] needs comes first.
type ring struct {
	words
	layout  Layout
	mask    uint64 // checked when the ring was opened; used instead of the header's
	backing Backing
	err     error  // result of a function that runs under guard
	mem     []byte // the whole file; nil once closed
	slots   []byte
	path    string
}

func ringIn(mem []byte, b Backing, l Layout, mask uint64) ring {
	return ring{
		words: words{
			write:    word(mem, offWritePos),
			read:     word(mem, offReadPos),
			version:  half(mem, offVersion),
			capacity: word(mem, offCapacity),
		},
		layout: l, mask: mask, mem: mem, slots: mem[HeaderSize:], backing: b,
	}
}

// Path returns the path that the ring was opened or created with, or "" for memory.
func (r *ring) Path() string { return r.path }

// Layout returns the ring's layout.
func (r *ring) Layout() Layout { return r.layout }

// Capacity returns the number of slots. A full ring holds one event less.
func (r *ring) Capacity() int { return int(r.mask) + 1 }

func (r *ring) distance(from, to uint64) int { return int((to - from) & r.mask) }

// guard runs fn if the ring is open. It returns the error that fn stored in err, or the
// fault that ended fn.
func (r *ring) guard(fn func()) error {
	if r.mem == nil {
		return r.wrap(os.ErrClosed)
	}
	r.err = nil
	err := r.backing.Guard(fn)
	if err == nil {
		err = r.err
	}
	if err != nil {
		err = r.wrap(err)
	}
	return err
}

func (r *ring) wrap(err error) error {
	if r.path == "" {
		return fmt.Errorf("ring: %w", err)
	}
	return fmt.Errorf("ring %s: %w", r.path, err)
}

// Close releases the ring. The file stays, with all events that weren't committed. Close is
// idempotent.
func (r *ring) Close() error {
	if r.mem == nil {
		return nil
	}
	r.mem, r.slots, r.words = nil, nil, words{} // no pointer may refer to memory that was unmapped
	if f, ok := r.backing.(fileBacking); ok {
		if err := f.Close(); err != nil {
			return r.wrap(fmt.Errorf("close: %w", err))
		}
	}
	return nil
}

func aligned(mem []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%8 == 0 }

// words are the header fields of a ring in shared memory. Access them only with
// sync/atomic and under a Guard.
type words struct {
	write    *uint64 // the agent stores it, after the slot
	read     *uint64 // the consumer stores it, after its last access to the slot
	version  *int32  // 0 until the ring is ready
	capacity *uint64
}

func word(mem []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&mem[at : at+8][0])) }

func half(mem []byte, at int) *int32 { return (*int32)(unsafe.Pointer(&mem[at : at+4][0])) }

// is reports whether the header has this version and capacity.
func (w *words) is(version int32, capacity uint64) bool {
	return atomic.LoadInt32(w.version) == version && atomic.LoadUint64(w.capacity) == capacity
}

// buffer holds the events that a reader has copied from a ring.
type buffer [16 << 10 / 8]uint64

// buffers are shared by all readers: a reader needs one only while it reads.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
}

// copyWords copies memory that another process may write concurrently. The loads are
// atomic so that the CPU can't reorder a later load of writePos before them, which would
// otherwise happen on arm64.
func copyWords(dst []uint64, mem []byte) {
	from := unsafe.Slice(word(mem, 0), len(mem)/8)
	for i := range from {
		dst[i] = atomic.LoadUint64(&from[i])
	}
}
