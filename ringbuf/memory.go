// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// nativeOrder reports whether this machine has the byte order of the rings.
var nativeOrder = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

var errBigEndian = fmt.Errorf("%w: rings are little-endian, but this machine is big-endian", errors.ErrUnsupported)

func aligned(mem []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%8 == 0 }

// words are the header fields of a ring in shared memory. Access them only with
// sync/atomic and under a Guard.
type words struct {
	write    *uint64 // the agent stores it, after the slot
	read     *uint64 // the consumer stores it, after its last access to the slot
	version  *int32  // 0 until the ring is ready
	capacity *uint64
}

func wordsOf(mem []byte, g *geometry) words {
	return words{
		write:    word(mem, offWritePos),
		read:     word(mem, g.readPos),
		version:  half(mem, offVersion),
		capacity: word(mem, g.capacity),
	}
}

func word(mem []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&mem[at : at+8][0])) }

func half(mem []byte, at int) *int32 { return (*int32)(unsafe.Pointer(&mem[at : at+4][0])) }

// is reports whether the header has this version and capacity.
func (w *words) is(version int32, capacity uint64) bool {
	return atomic.LoadInt32(w.version) == version && atomic.LoadUint64(w.capacity) == capacity
}

// copyWords copies n bytes of memory that another process may write concurrently.
// The loads are atomic so that the CPU can't reorder a later load of writePos
// before them, which would otherwise happen on arm64.
func copyWords(dst []uint64, mem []byte, at, n int) []byte {
	from := unsafe.Slice(word(mem, at), n/8)
	for i := range from {
		dst[i] = atomic.LoadUint64(&from[i])
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), n)
}
