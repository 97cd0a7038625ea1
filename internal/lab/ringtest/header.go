// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringtest

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// HeaderSize is the size of a ring's header.
const HeaderSize = 40

// Header is a ring's header.
type Header struct {
	WritePos, ReadPos        uint64
	Version, ExpectedVersion int32
	Capacity, Mask           uint64
}

// Drained reports whether a consumer has committed all events. At position 0, a consumer keeps
// the slot before it.
func (h Header) Drained() bool {
	return h.ReadPos == h.WritePos || h.WritePos == 0 && h.ReadPos == h.Mask && h.Mask > 1
}

// NewHeader returns the header of an empty ring.
func NewHeader(version int32, capacity uint64) Header {
	return Header{Version: version, ExpectedVersion: version, Capacity: capacity, Mask: capacity - 1}
}

// Bytes returns the encoded header.
func (h Header) Bytes() []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		panic(err) // the fields have fixed sizes
	}
	return b.Bytes()
}

// Make writes a ring file with the given number of zero bytes after the header, which
// needn't match the header.
func Make(tb testing.TB, path string, h Header, slots int) string {
	tb.Helper()
	must.OK(tb, os.WriteFile(path, append(h.Bytes(), make([]byte, slots)...), 0o600))
	return path
}

// ReadHeader reads the header of the file at path.
func ReadHeader(tb testing.TB, path string) (h Header) {
	tb.Helper()
	f, err := os.Open(path)
	must.OK(tb, err)
	defer f.Close()
	must.OK(tb, binary.Read(f, binary.LittleEndian, &h))
	return h
}

// Edit changes the header of the file at path in place, like another process. Processes
// that have mapped the file see the change immediately.
func Edit(tb testing.TB, path string, change func(*Header)) {
	tb.Helper()
	h := ReadHeader(tb, path)
	change(&h)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(tb, err)
	defer f.Close()
	if _, err := f.WriteAt(h.Bytes(), 0); err != nil {
		tb.Fatal(err)
	}
}
