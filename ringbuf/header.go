// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// MaxCapacity is the largest number of slots that a ring may have. NIXL has no limit, but its default is 4,096, and an
// agent writes at most as many events per run interval as its queue has. The limit bounds what one file can make a reader do: a
// quarter of a million events take 15 MB in the layout with the largest slots.
const MaxCapacity = 1 << 18

// Header is a copy of a ring's header at the time it was read.
type Header struct {
	WritePos, ReadPos        uint64 // slots
	Version, ExpectedVersion int32
	Capacity, Mask           uint64 // slots; Capacity-1
}

// decodeHeader decodes the header at the start of b.
func decodeHeader(b []byte) Header {
	le := binary.LittleEndian
	return Header{
		WritePos: le.Uint64(b[offWritePos:]), ReadPos: le.Uint64(b[offReadPos:]),
		Version: int32(le.Uint32(b[offVersion:])), ExpectedVersion: int32(le.Uint32(b[offExpectedVersion:])),
		Capacity: le.Uint64(b[offCapacity:]), Mask: le.Uint64(b[offMask:]),
	}
}

// identify returns the layout that matches the first bytes of a file and its size,
// or an error that explains why none does. The order of the checks matters: a ring
// that is being created can have any geometry, and a version is unknown only if
// the other fields show that the file is a ring.
func identify(b []byte, fileSize int64) (Header, Layout, error) {
	h := decodeHeader(b)
	if h.Version == 0 {
		return h, 0, h.notReady()
	}
	problem := h.problem(fileSize)
	switch {
	case problem != "" && (h.Version < 1 || h.Version > maxPlausibleVersion):
		return h, 0, fmt.Errorf("%w: the file has no valid header", ErrNotRing)
	case h.Version < 1 || h.Version > newest.Version():
		return h, 0, fmt.Errorf("%w %d (versions 1 to 4 are known): this agent needs a newer reader; the ring stays unchanged",
			ErrUnknownVersion, h.Version)
	case problem != "":
		return h, 0, fmt.Errorf("%w: %s", ErrInvalid, problem)
	}
	l := Layout(h.Version)
	if l.FileSize(h.Capacity) != fileSize {
		return h, 0, fmt.Errorf("%w: a ring of version %d with %d slots does not have %d bytes; was it truncated?",
			ErrInvalid, h.Version, h.Capacity, fileSize)
	}
	return h, l, checkPositions(h.WritePos, h.ReadPos, h.Mask)
}

// notReady explains version 0: the agent is still creating the ring, or failed to.
func (h *Header) notReady() error {
	if h.Capacity > 1 && h.Mask == h.Capacity-1 && bits.OnesCount64(h.Capacity) != 1 {
		return fmt.Errorf("%w: the agent failed to start because %d slots are not a power of two; "+
			"set NIXL_TELEMETRY_BUFFER_SIZE to a power of two", ErrNotReady, h.Capacity)
	}
	if h.WritePos != 0 { // an agent sets it to 0 before the version
		return unfinished(fmt.Sprintf("the version is 0, and the write position is %d", h.WritePos))
	}
	return fmt.Errorf("%w: the version is still 0; the agent is starting or failed to start", ErrNotReady)
}

// maxPlausibleVersion is the largest version that a future layout may have. The
// same bytes of a text file are four letters, a much larger number.
const maxPlausibleVersion = 255

// problem returns why the geometry fits no ring, whatever the size of its events, or "".
func (h *Header) problem(fileSize int64) string {
	switch {
	case h.Capacity == 0, h.Capacity == 1:
		return fmt.Sprintf("a capacity of %d holds no event; set NIXL_TELEMETRY_BUFFER_SIZE to 2 or more", h.Capacity)
	case bits.OnesCount64(h.Capacity) != 1:
		return fmt.Sprintf("capacity %d is not a power of two", h.Capacity)
	case h.Capacity > MaxCapacity:
		return fmt.Sprintf("capacity %d is above the limit of %d", h.Capacity, MaxCapacity)
	case h.Mask != h.Capacity-1:
		return fmt.Sprintf("mask %#x doesn't match capacity %d", h.Mask, h.Capacity)
	case fileSize <= HeaderSize, uint64(fileSize-HeaderSize)%h.Capacity != 0:
		return fmt.Sprintf("a ring with %d slots does not have %d bytes; was it truncated?", h.Capacity, fileSize)
	default:
		return ""
	}
}

func checkPositions(write, read, mask uint64) error {
	if write > mask || read > mask {
		return fmt.Errorf("%w: write position %d or read position %d is beyond the last slot %d", ErrInvalid, write, read, mask)
	}
	return nil
}
