// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// MaxCapacity is the largest number of slots that a ring may have. It limits the
// address space that a ring takes. 4 million events are a thousand times the default
// size of an agent's queue, and take 235 MB in the layout with the largest slots.
const MaxCapacity = 1 << 22

// Header is a copy of a ring's header at the time it was read.
type Header struct {
	WritePos, ReadPos        uint64 // slots
	Version, ExpectedVersion int32  // ExpectedVersion is 0 in layout V5
	Capacity, Mask           uint64 // slots; Capacity-1
}

// decodeHeader decodes the header at the start of b, which must have at least 40
// bytes. The version has the same offset in every layout and selects the offsets
// of the other fields. Fields beyond the end of b stay 0.
func decodeHeader(b []byte) Header {
	return geometryOf(int32(binary.LittleEndian.Uint32(b[offVersion:]))).decode(b)
}

// geometryOf returns the geometry of a version. A future one can have any.
func geometryOf(version int32) *geometry {
	if version == V5.Version() {
		return &padded
	}
	return &compact
}

func (g *geometry) decode(b []byte) (h Header) {
	le := binary.LittleEndian
	h.WritePos = le.Uint64(b[offWritePos:])
	h.Version = int32(le.Uint32(b[offVersion:]))
	h.Capacity, h.Mask = le.Uint64(b[g.capacity:]), le.Uint64(b[g.mask:])
	if g.expectedVersion > 0 {
		h.ExpectedVersion = int32(le.Uint32(b[g.expectedVersion:]))
	}
	if len(b) >= g.readPos+8 {
		h.ReadPos = le.Uint64(b[g.readPos:])
	}
	return h
}

// identify returns the layout that matches the first bytes of a file and its size,
// or an error that explains why none does. The order of the checks matters: a ring
// that is being created can have any geometry, and a version is unknown only if
// the other fields show that the file is a ring.
func identify(b []byte, fileSize int64) (Header, Layout, error) {
	h := decodeHeader(b)
	if h.Version == 0 {
		return h, 0, notReady(b)
	}
	problem := h.problem(fileSize)
	switch {
	case problem != "" && (h.Version < 1 || h.Version > maxPlausibleVersion):
		return h, 0, fmt.Errorf("%w: the file has no valid header", ErrNotRing)
	case h.Version < 1 || h.Version > newest.Version():
		return h, 0, fmt.Errorf("%w %d (versions 1 to 5 are known): this agent needs a newer reader; the ring stays unchanged",
			ErrUnknownVersion, h.Version)
	case problem != "":
		return h, 0, fmt.Errorf("%w: %s", ErrInvalid, problem)
	}
	for _, l := range Layouts() {
		if l.Version() == h.Version && l.FileSize(h.Capacity) == fileSize {
			return h, l, checkPositions(h.WritePos, h.ReadPos, h.Mask)
		}
	}
	return h, 0, fmt.Errorf("%w: a ring of version %d with %d slots does not have %d bytes; was it truncated?",
		ErrInvalid, h.Version, h.Capacity, fileSize)
}

// notReady explains version 0: the agent is still creating the ring, or failed to.
func notReady(b []byte) error {
	for _, g := range []*geometry{&compact, &padded} {
		h := g.decode(b)
		if h.Capacity > 1 && h.Mask == h.Capacity-1 && bits.OnesCount64(h.Capacity) != 1 {
			return fmt.Errorf("%w: the agent failed to start because %d slots are not a power of two; "+
				"set NIXL_TELEMETRY_BUFFER_SIZE to a power of two", ErrNotReady, h.Capacity)
		}
	}
	if writePos := compact.decode(b).WritePos; writePos != 0 { // an agent sets it to 0 before the version
		return unfinished(fmt.Sprintf("the version is 0, and the write position is %d", writePos))
	}
	return fmt.Errorf("%w: the version is still 0; the agent is starting or failed to start", ErrNotReady)
}

// maxPlausibleVersion is the largest version that a future layout may have. The
// same bytes of a text file are four letters, a much larger number.
const maxPlausibleVersion = 255

// problem returns why the geometry fits no ring, whatever the size of its events, or "".
func (h *Header) problem(fileSize int64) string {
	size := int64(geometryOf(h.Version).size)
	switch {
	case h.Capacity == 0, h.Capacity == 1:
		return fmt.Sprintf("a capacity of %d holds no event; set NIXL_TELEMETRY_BUFFER_SIZE to 2 or more", h.Capacity)
	case bits.OnesCount64(h.Capacity) != 1:
		return fmt.Sprintf("capacity %d is not a power of two", h.Capacity)
	case h.Capacity > MaxCapacity:
		return fmt.Sprintf("capacity %d is above the limit of %d", h.Capacity, MaxCapacity)
	case h.Mask != h.Capacity-1:
		return fmt.Sprintf("mask %#x doesn't match capacity %d", h.Mask, h.Capacity)
	case fileSize <= size, uint64(fileSize-size)%h.Capacity != 0:
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
