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
	g := &compact
	if int32(binary.LittleEndian.Uint32(b[offVersion:])) == V5.Version() {
		g = &padded
	}
	return g.decode(b)
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
	if err := h.checkGeometry(fileSize); err != nil {
		return h, 0, err
	}
	for _, l := range Layouts() {
		if l.Version() == h.Version && l.FileSize(h.Capacity) == fileSize {
			return h, l, h.checkPositions()
		}
	}
	if h.Version < 1 || h.Version > newest.Version() {
		return h, 0, unknownVersion(h.Version)
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

// checkGeometry returns what is wrong with a header of any layout. If the other
// fields are invalid, the version decides whether the file is a ring.
func (h *Header) checkGeometry(fileSize int64) error {
	if h.plausible(fileSize) {
		return nil
	}
	if h.Version < 1 || h.Version > maxPlausibleVersion {
		return fmt.Errorf("%w: the file has no valid header", ErrNotRing)
	}
	if h.Version > newest.Version() {
		return unknownVersion(h.Version)
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
		return fmt.Errorf("%w: a ring with %d slots does not have %d bytes; was it truncated?", ErrInvalid, h.Capacity, fileSize)
	}
}

// plausible reports whether the geometry fits a ring of any event size.
func (h *Header) plausible(fileSize int64) bool {
	size := int64(compact.size)
	if h.Version == V5.Version() {
		size = int64(padded.size)
	}
	return h.Capacity >= 2 && h.Capacity <= MaxCapacity && bits.OnesCount64(h.Capacity) == 1 &&
		h.Mask == h.Capacity-1 && fileSize > size && uint64(fileSize-size)%h.Capacity == 0
}

// maxPlausibleVersion is the largest version that a future layout may have. The
// same bytes of a text file are four letters, a much larger number.
const maxPlausibleVersion = 255

func (h *Header) checkPositions() error {
	if h.WritePos > h.Mask || h.ReadPos > h.Mask {
		return fmt.Errorf("%w: write position %d or read position %d is beyond the last slot %d",
			ErrInvalid, h.WritePos, h.ReadPos, h.Mask)
	}
	return nil
}

func unknownVersion(v int32) error {
	return fmt.Errorf("%w %d (versions 1 to 5 are known): this agent needs a newer reader; the ring stays unchanged", ErrUnknownVersion, v)
}
