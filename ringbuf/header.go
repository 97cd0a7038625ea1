package ringbuf

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// header is the C++ struct BufferHeader of NIXL's
// src/utils/common/cyclic_buffer.h, the same in every release so far.
// Fields that another process stores to are read with sync/atomic only.
type header struct {
	writePos        uint64 // atomic; stored by the agent, after the slot
	readPos         uint64 // atomic; stored by the consumer, after its last look at the slot
	version         int32  // atomic; stored when a ring is ready, 0 until then
	expectedVersion int32
	capacity        uint64 // slots
	mask            uint64 // capacity-1
}

const (
	headerSize = 40

	offWritePos        = 0
	offReadPos         = 8
	offVersion         = 16
	offExpectedVersion = 20
	offCapacity        = 24
	offMask            = 32
)

// MaxCapacity is the most slots that a ring may have. It bounds what is mapped,
// and so what a ring can cost: 4 million events are a thousand times what an
// agent stages by default, and 235 MB at the largest slot. On a tmpfs to read a
// hole of a file is to allocate it.
const MaxCapacity = 1 << 22

// Header is a copy of a ring's header, as it stood when it was read.
type Header struct {
	WritePos, ReadPos        uint64
	Version, ExpectedVersion int32
	Capacity, Mask           uint64
}

// decodeHeader reads a header from the first bytes of a file.
func decodeHeader(b []byte) Header {
	le := binary.LittleEndian
	return Header{
		WritePos:        le.Uint64(b[offWritePos:]),
		ReadPos:         le.Uint64(b[offReadPos:]),
		Version:         int32(le.Uint32(b[offVersion:])),
		ExpectedVersion: int32(le.Uint32(b[offExpectedVersion:])),
		Capacity:        le.Uint64(b[offCapacity:]),
		Mask:            le.Uint64(b[offMask:]),
	}
}

// layout tells which layout a header and the size of its file belong to, or
// why they belong to none. The order matters: a ring in the making has any
// geometry, and a version can only be called unknown where the rest shows
// that the file is a ring.
func (h *Header) layout(fileSize int64) (Layout, error) {
	switch {
	case h.Version == 0:
		return 0, h.notReady()
	case !h.plausible(fileSize):
		return 0, h.implausible(fileSize)
	}
	for _, l := range Layouts() {
		if l.Version() == h.Version && l.fileSize(h.Capacity) == fileSize {
			return l, h.checkPositions()
		}
	}
	if h.Version < 1 || h.Version > V4.Version() {
		return 0, &UnknownVersionError{Version: h.Version}
	}
	return 0, fmt.Errorf("%w: version %d and %d slots don't make a file of %d bytes; was it truncated?",
		ErrInvalid, h.Version, h.Capacity, fileSize)
}

// notReady is what version 0 means: an agent has yet to finish, or never will.
func (h *Header) notReady() error {
	if h.Capacity != 0 && bits.OnesCount64(h.Capacity) != 1 {
		return fmt.Errorf("%w: its agent failed to start, as %d slots are not a power of two; "+
			"set NIXL_TELEMETRY_BUFFER_SIZE to one", ErrNotReady, h.Capacity)
	}
	return fmt.Errorf("%w: its version is still 0; the agent is starting, or failed to", ErrNotReady)
}

// plausible says whether the geometry fits a ring of any event size.
func (h *Header) plausible(fileSize int64) bool {
	slots := uint64(fileSize) - headerSize
	return h.Capacity >= 2 && h.Capacity <= MaxCapacity && bits.OnesCount64(h.Capacity) == 1 &&
		h.Mask == h.Capacity-1 && slots%h.Capacity == 0 && slots > 0
}

// implausible says what is wrong with a geometry, and calls a file a ring only
// if its version says so.
func (h *Header) implausible(fileSize int64) error {
	if h.Version < 1 || h.Version > maxPlausibleVersion {
		return fmt.Errorf("%w: its header makes no sense", ErrNotRing)
	}
	if h.Version > V4.Version() {
		return &UnknownVersionError{Version: h.Version}
	}
	switch {
	case h.Capacity == 0, h.Capacity == 1:
		return fmt.Errorf("%w: a capacity of %d holds no event; set NIXL_TELEMETRY_BUFFER_SIZE to 2 or more",
			ErrInvalid, h.Capacity)
	case bits.OnesCount64(h.Capacity) != 1:
		return fmt.Errorf("%w: capacity %d is not a power of two", ErrInvalid, h.Capacity)
	case h.Capacity > MaxCapacity:
		return fmt.Errorf("%w: capacity %d is above the limit of %d", ErrInvalid, h.Capacity, MaxCapacity)
	case h.Mask != h.Capacity-1:
		return fmt.Errorf("%w: mask %#x doesn't match capacity %d", ErrInvalid, h.Mask, h.Capacity)
	default:
		return fmt.Errorf("%w: %d slots don't make a file of %d bytes; was it truncated?", ErrInvalid, h.Capacity, fileSize)
	}
}

// maxPlausibleVersion is where a version stops being one. A layout with a
// longer header is proposed (ai-dynamo/nixl#2018), which keeps the version's
// place only; a text file has four letters there.
const maxPlausibleVersion = 255

func (h *Header) checkPositions() error {
	if h.WritePos > h.Mask || h.ReadPos > h.Mask {
		return fmt.Errorf("%w: write position %d or read position %d is beyond the last slot %d",
			ErrInvalid, h.WritePos, h.ReadPos, h.Mask)
	}
	return nil
}
